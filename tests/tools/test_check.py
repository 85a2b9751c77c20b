"""attn check: numbers, places, NaN, exit status."""
import sys

from common import attn, main, save, write_safetensors
import numpy as np


def check(actual, expected, *options, status=0):
    save('a.npy', np.asarray(actual))
    save('e.npy', np.asarray(expected))
    return attn('check', 'a.npy', 'e.npy', *options, status=status)[0].decode()


def test_equal():
    x = np.arange(6, dtype='f4').reshape(2, 3)
    assert check(x, x) == 'equal bits, 6 values [2,3]\n'
    assert check(x, x, '--quiet') == ''


def test_what_and_where():
    x = np.ones((2, 3), 'f4')
    y = x.copy()
    y[1, 2] = np.nextafter(np.float32(1), np.float32(2))
    out = check(y, x, status=1)
    assert out == ('DIFFERENT, 6 values [2,3]\n'
                   '  largest absolute error  1.19209e-07\n'
                   '  largest relative error  1.19209e-07\n'
                   '  largest ULP distance    1\n'
                   '  elements that differ    1\n'
                   '  worst at                [1,2]: 1.00000012, expected 1\n'), out
    assert 'within the tolerance' in check(y, x, '--absolute', '1e-6')
    check(y, x, '--relative', '1e-6')
    check(y, x, '--ulp', '1')
    check(y, x, '--ulp', '0', status=1)
    check(y, x, '--absolute', '1e-8', status=1)
    assert check(y, x, '-q', status=1) == ''


def test_nan_and_infinity():
    x = np.array([np.nan, np.inf, -np.inf, 1], 'f4')
    check(x, x)
    for at, value in ((0, 1), (1, -np.inf), (2, 3e38), (3, np.nan)):
        y = x.copy()
        y[at] = value
        out = check(y, x, '--absolute', '1e300', status=1)
        assert f'worst at                [{at}]' in out, out
        check(y, x, '--ulp', '4000000000', status=1)
    # Another NaN is a NaN.
    y = x.copy()
    y.view('u4')[0] ^= 1
    check(y, x)


def test_shapes_and_dtypes():
    out = check(np.zeros((2, 3)), np.zeros((3, 2)), status=1)
    assert 'shape' in out
    check(np.ones(3, 'f4'), np.ones(3, 'f8'))
    # A distance to float64 counts in units of the float32 that it is rounded to.
    third = np.full(3, 1 / 3)
    assert 'ULP distance    0\n' in check(third.astype('f4'), third, '--absolute', '1e-6')
    check(third.astype('f4'), third, '--ulp', '0')
    check(np.ones(3, 'i4'), np.ones(3, 'f4'), status=1)


def test_files_of_several_tensors():
    one, two = np.ones(3, 'f4'), np.full(3, 2, 'f4')
    write_safetensors('a.safetensors', {'x': one, 'y': two, 'z': one})
    write_safetensors('e.safetensors', {'x': one, 'y': one, 'w': one})
    out = attn('check', 'a.safetensors', 'e.safetensors', status=1)[0].decode()
    assert 'x: equal bits, 3 values [3]\n' in out
    assert 'y: DIFFERENT, 3 values [3]\n' in out
    assert 'w: missing in a.safetensors\n' in out
    assert 'z: only in a.safetensors\n' in out
    attn('check', 'a.safetensors:x', 'e.safetensors:y')
    attn('check', 'a.safetensors:y', 'e.safetensors:y', status=1)
    save('x.npy', one)
    attn('check', 'x.npy', 'e.safetensors:w')


def test_unreadable():
    save('x.npy', np.ones(3))
    _, stderr = attn('check', 'x.npy', 'absent.npy', status=3)
    assert stderr == 'attn check: absent.npy: No such file or directory\n'
    _, stderr = attn('check', 'x.npy', 'x.npy:y', status=3)
    assert stderr == 'attn check: x.npy: no tensor is named "y"\n'


if __name__ == '__main__':
    main(sys.modules['__main__'])
