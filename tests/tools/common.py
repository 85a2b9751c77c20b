"""What the tests of the attn command share: running it, and the layers as numpy formulas.

Each test file is a program: FILE.py ATTN DATA, where ATTN is the command and DATA is tests/data.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import traceback

try:
    import numpy as np
except ImportError:
    print('numpy is not installed')
    sys.exit(77)

ATTN = os.path.abspath(sys.argv[1])
DATA = os.path.abspath(sys.argv[2])
FOLDER = tempfile.TemporaryDirectory(prefix='attn-tools.')


def path(name):
    return os.path.join(FOLDER.name, name)


def golden(name):
    return os.path.join(DATA, 'golden', name + '.safetensors')


def attn(*arguments, status=0, stdin=None):
    """Runs the command in the test's folder; checks the exit status; returns (stdout, stderr)."""
    done = subprocess.run([ATTN, *arguments], cwd=FOLDER.name, input=stdin, capture_output=True,
                          check=False)
    stderr = done.stderr.decode()
    assert done.returncode == status, \
        f'attn {" ".join(arguments)}: status {done.returncode}, not {status}\n{stderr}'
    return done.stdout, stderr


def save(name, array):
    np.save(path(name), array)
    return name


def load(name):
    return np.load(path(name))


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


DTYPES = {'F64': '<f8', 'F32': '<f4', 'F16': '<f2', 'I64': '<i8', 'I32': '<i4', 'I16': '<i2',
          'I8': '|i1', 'U8': '|u1', 'BOOL': '|b1', 'BF16': '<u2'}


def read_safetensors(name):
    """A reader of its own: {name: array}, metadata. bfloat16 comes as uint16."""
    with open(os.path.join(FOLDER.name, name), 'rb') as file:
        data = file.read()
    length = struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata = header.pop('__metadata__', {})
    tensors = {}
    for key, entry in header.items():
        begin, end = entry['data_offsets']
        array = np.frombuffer(data[8 + length + begin:8 + length + end],
                              DTYPES[entry['dtype']])
        tensors[key] = array.reshape(entry['shape'])
    return tensors, metadata


def write_safetensors(name, tensors):
    names = {np.dtype(numpy_name): name for name, numpy_name in DTYPES.items() if name != 'BF16'}
    header, data = {}, b''
    for key, array in tensors.items():
        array = np.ascontiguousarray(array)
        header[key] = {'dtype': names[array.dtype], 'shape': list(array.shape),
                       'data_offsets': [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(path(name), 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + data)
    return name


def softmax(scores):
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def close(actual, expected, bound=2e-6):
    assert actual.shape == expected.shape, f'{actual.shape}, not {expected.shape}'
    worst = np.abs(actual.astype(np.float64) - expected).max(initial=0)
    assert worst <= bound, f'off by {worst}'


def main(module):
    """Runs every test_... function of the file; exit status 1 when one fails."""
    failed = 0
    for name, test in list(vars(module).items()):
        if name.startswith('test_'):
            try:
                test()
                print('ok    ', name)
            except Exception:  # every test runs, whatever the others did
                failed += 1
                print('FAILED', name)
                traceback.print_exc(file=sys.stdout)
    FOLDER.cleanup()
    sys.exit(1 if failed else 0)
