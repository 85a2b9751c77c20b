"""attn plot makes pictures of every kind in every format."""
import struct
import sys

from common import attn, main, path, random, save, softmax
import numpy as np


def weights():
    save('w.npy', softmax(random(1, 2, 3, 6, 6)))
    with open(path('tokens.txt'), 'w', encoding='utf-8') as file:
        file.write('Your\njourney\nstarts\nwith\none\nstep\n')


def read(name):
    with open(path(name), 'rb') as file:
        return file.read()


def png_size(name):
    data = read(name)
    assert data[:8] == b'\x89PNG\r\n\x1a\n' and data[-8:-4] == b'IEND'
    return struct.unpack('>II', data[16:24])


def test_heat_maps():
    weights()
    attn('plot', 'w.npy', '-o', 'grid.png')
    attn('plot', 'w.npy', '-o', 'one.png', '--heads', '1', '--batch', '1', '--tokens',
         'tokens.txt', '--title', 'Weights', '--hide-future', '--range', '0,1')
    grid, one = png_size('grid.png'), png_size('one.png')
    assert grid[0] > 600 and one[0] > 600 and grid != one
    attn('plot', 'w.npy', '-o', 'wide.png', '--columns', '3')
    assert png_size('wide.png')[0] > grid[0]


def test_formats():
    weights()
    attn('plot', 'w.npy', '-o', 'w.svg')
    svg = read('w.svg')
    assert svg.startswith(b'<?xml') and svg.rstrip().endswith(b'</svg>')
    attn('plot', 'w.npy', '-o', 'w.pdf')
    pdf = read('w.pdf')
    assert pdf.startswith(b'%PDF-') and pdf.rstrip().endswith(b'%%EOF')
    # The same figure is the same bytes.
    for name in ('w.svg', 'w.pdf'):
        before = read(name)
        attn('plot', 'w.npy', '-o', name)
        assert read(name) == before, name


def test_bars_and_curves():
    save('p.npy', softmax(random(2, 8)))
    attn('plot', 'p.npy', '--kind', 'bars', '-o', 'bars.png')
    png_size('bars.png')
    save('loss.npy', np.exp(-np.arange(50) / 10))
    with open(path('loss.txt'), 'w', encoding='utf-8') as file:
        file.write('\n'.join(str(2 * 0.9 ** i) for i in range(50)))
    attn('plot', 'loss.npy', 'loss.txt', '-o', 'curves.png', '--log')
    width, _ = png_size('curves.png')
    attn('plot', 'loss.npy', '-o', 'curve.png')
    assert png_size('curve.png')[0] < width  # no legend


def test_large_maps():
    save('large.npy', softmax(random(3, 700, 500)))
    attn('plot', 'large.npy', '-o', 'large.png')
    assert max(png_size('large.png')) < 1400


def test_missing_characters_are_named():
    weights()
    with open(path('tokens.txt'), 'w', encoding='utf-8') as file:
        file.write('\U000F1234\n' * 6)  # a private character that no font has
    _, stderr = attn('plot', 'w.npy', '-o', 'none.png', '--tokens', 'tokens.txt', status=3)
    assert '(U+F1234)' in stderr and 'no installed font' in stderr, stderr


if __name__ == '__main__':
    main(sys.modules['__main__'])
