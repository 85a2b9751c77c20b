"""numpy writes and reads beside attn: every dtype, order, rank; archives; safetensors."""
import io
import itertools
import os
import sys

from common import attn, load, main, path, read_safetensors, save, write_safetensors
import numpy as np

DTYPES = ['f2', 'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', 'b1']


def numpy_bytes(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def numbers(dtype, shape):
    count = int(np.prod(shape))
    return (np.arange(count) * 3 % 101 % (2 if dtype == 'b1' else 101)).reshape(shape).astype(dtype)


def test_npy_comes_back_byte_for_byte():
    shapes = [(), (0,), (1,), (5,), (2, 3), (0, 3), (1, 4), (4, 1), (2, 3, 4), (2, 1, 3, 2),
              (2, 2, 2, 2, 2), (1, 2, 1, 2, 1, 2), (2,) * 7, (2,) * 8, (1000,), (123, 4567)]
    for dtype, shape in itertools.product(DTYPES, shapes):
        for order in 'CF':
            array = np.asarray(numbers(dtype, shape), order=order)
            save('in.npy', array)
            attn('convert', 'in.npy', 'out.npy')
            with open(path('out.npy'), 'rb') as file:
                assert file.read() == numpy_bytes(array), (dtype, shape, order)


def test_npy_through_standard_streams():
    array = numbers('f4', (3, 4))
    out, _ = attn('convert', '-', '-', stdin=numpy_bytes(array))
    assert out == numpy_bytes(array)


def test_npy_big_endian():
    for dtype in DTYPES:
        array = numbers(dtype, (3, 5))
        save('in.npy', array.astype(np.dtype(dtype).newbyteorder('>')))
        attn('convert', 'in.npy', 'out.npy')
        with open(path('out.npy'), 'rb') as file:
            assert file.read() == numpy_bytes(array), dtype


def test_npy_versions():
    array = numbers('f8', (2, 3))
    for version in [(1, 0), (2, 0), (3, 0)]:
        with open(path('in.npy'), 'wb') as file:
            np.lib.format.write_array(file, array, version=version)
        attn('convert', 'in.npy', 'out.npy')
        assert np.array_equal(load('out.npy'), array)


def test_npy_written_by_attn_can_be_memory_mapped():
    array = numbers('f4', (64, 3))
    save('in.npy', array)
    attn('convert', 'in.npy', 'out.npy')
    assert np.array_equal(np.load(path('out.npy'), mmap_mode='r'), array)


def test_npy_refusals():
    structured = np.zeros(3, dtype=[('a', 'f4'), ('b', 'i4')])
    for array, message in [(np.array([{}], dtype=object), 'object arrays'),
                           (structured, 'structured arrays'),
                           (np.zeros(3, 'c8'), "dtype '<c8' is not supported"),
                           (np.array(['ab']), "dtype '<U2' is not supported"),
                           (np.zeros(2, 'V2'), "bfloat16, say so (ATTN_NPY_BFLOAT16, --bfloat16)"),
                           (np.zeros(2, 'u4'), "dtype '<u4' is not supported")]:
        save('in.npy', array)
        _, stderr = attn('convert', 'in.npy', 'out.npy', status=3)
        assert message in stderr, stderr
    assert not os.path.exists(path('absent/out.npy'))


def test_npz_stored_and_deflated():
    arrays = {'x': numbers('f4', (2, 3)), 'layer.y': np.asfortranarray(numbers('i8', (3, 4))),
              'z': numbers('b1', (7,)), 'empty': np.zeros((0, 2)), 'scalar': np.float64(3.5)}
    for writer in (np.savez, np.savez_compressed):
        writer(path('in.npz'), **arrays)
        attn('convert', 'in.npz', 'folder/')
        for name, array in arrays.items():
            back = load(f'folder/{name}.npy')
            assert back.dtype == np.asarray(array).dtype and np.array_equal(back, array), name
        attn('convert', 'in.npz', 'out.safetensors')
        tensors, _ = read_safetensors('out.safetensors')
        assert set(tensors) == set(arrays)
        for name, array in arrays.items():
            assert np.array_equal(tensors[name], array), name
        attn('convert', 'in.npz', 'one.npy', '--tensor', 'x')
        assert np.array_equal(load('one.npy'), arrays['x'])


def test_safetensors_from_another_writer():
    tensors = {'b': numbers('f4', (2, 3)), 'a': numbers('f8', (4,)), 'c': numbers('u1', (3,))}
    write_safetensors('in.safetensors', tensors)
    attn('convert', 'in.safetensors', 'out.safetensors')
    back, _ = read_safetensors('out.safetensors')
    assert list(back) == ['a', 'b', 'c']
    for name, array in tensors.items():
        assert np.array_equal(back[name], array)
    with open(path('out.safetensors'), 'rb') as file:
        first = file.read()
    attn('convert', 'out.safetensors', 'again.safetensors')
    with open(path('again.safetensors'), 'rb') as file:
        assert file.read() == first


def test_casts_round_as_numpy_does():
    array = np.concatenate([np.random.default_rng(3).standard_normal(1000) * 10.0 ** e
                            for e in range(-9, 6)])
    save('in.npy', array)
    for cast, dtype in [('float32', 'f4'), ('float16', 'f2')]:
        attn('convert', 'in.npy', 'out.npy', '--cast', cast)
        with np.errstate(over='ignore'):
            expected = array.astype(dtype)
        assert np.array_equal(load('out.npy'), expected)


def test_bfloat16():
    array = np.array([1, -2.5, 3.14159, 65504], 'f4')
    save('in.npy', array)
    _, stderr = attn('convert', 'in.npy', 'out.npy', '--cast', 'bfloat16', status=3)
    assert '--bfloat16' in stderr
    attn('convert', 'in.npy', 'out.npy', '--cast', 'bfloat16', '--bfloat16')
    raw = load('out.npy')
    assert raw.dtype == np.dtype('V2')
    bits = array.view('u4')
    expected = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype('u2')
    assert np.array_equal(raw.view('u2'), expected)
    attn('convert', 'out.npy', 'back.npy', '--cast', 'float32', '--bfloat16')
    assert np.array_equal(load('back.npy').view('u4') >> 16, expected)


def test_sharded():
    os.makedirs(path('model'), exist_ok=True)
    write_safetensors('model/a.safetensors', {'x': numbers('f4', (2,))})
    write_safetensors('model/b.safetensors', {'y': numbers('f4', (3,))})
    with open(path('model/model.safetensors.index.json'), 'w', encoding='utf-8') as file:
        file.write('{"metadata": {}, "weight_map": {"y": "b.safetensors", "x": "a.safetensors"}}')
    out, _ = attn('inspect', 'model/model.safetensors.index.json')
    assert b'sharded safetensors, 2 tensors, 5 values, 20 B' in out, out


if __name__ == '__main__':
    main(sys.modules['__main__'])
