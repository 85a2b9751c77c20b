#!/usr/bin/python3
"""Writes the seed corpus: small good files of every format, which the fuzz targets start from.

usage: make_corpus.py FOLDER
"""
import io
import json
import os
import struct
import sys

import numpy as np


def safetensors(tensors, metadata=None):
    header, data = {}, b''
    if metadata:
        header['__metadata__'] = metadata
    for name, dtype, shape, size in tensors:
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(data), len(data) + size]}
        data += bytes(range(size))
    text = json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text + data


def npy(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=version)
    return stream.getvalue()


def npz(writer, **arrays):
    stream = io.BytesIO()
    writer(stream, **arrays)
    return stream.getvalue()


def lines(*tensors):
    return ''.join(' '.join([name, *map(str, shape)]) + '\n' for name, *shape in tensors).encode()


CORPUS = {
    'safetensors': [
        safetensors([]),
        safetensors([('a', 'F32', [2], 8), ('b', 'U8', [3, 1], 3)], {'k': 'v'}),
        safetensors([('x', 'BF16', [], 2), ('y', 'F64', [1], 8), ('z', 'BOOL', [0, 4], 0)]),
        safetensors([(t, t, [1], s) for t, s in
                     [('I64', 8), ('I32', 4), ('I16', 2), ('I8', 1), ('F16', 2)]]),
    ],
    'index': [
        b'{"metadata": {"total_size": 8}, "weight_map": {"a": "m-1.safetensors", "b": "m-2"}}',
        b'{"weight_map": {}}',
    ],
    'npy': [npy(np.zeros(3, dtype=t)) for t in
            ('<f2', '<f4', '>f8', '<i8', '>i4', '<i2', 'i1', 'u1', '?', 'V2')] + [
        npy(np.asfortranarray(np.ones((2, 3), 'f4'))), npy(np.float32(1)), npy(np.ones((0, 2))),
        npy(np.ones((1,) * 8)), npy([1.0], (2, 0)), npy([1.0], (3, 0))],
    'npz': [bytes([choice]) + npz(writer, a=np.ones(2, 'f4'), b=np.arange(3))
            for choice in (0, 1) for writer in (np.savez, np.savez_compressed)] + [
        b'\0' + npz(np.savez)],
    'layout': [
        lines(('h.0.attn.c_attn.weight', 4, 12), ('h.0.attn.c_attn.bias', 12),
              ('h.0.attn.c_proj.weight', 4, 4), ('h.0.attn.c_proj.bias', 4),
              ('h.0.attn.bias', 1, 1, 8, 8)),
        lines(('in_proj_weight', 12, 4), ('in_proj_bias', 12), ('out_proj.weight', 4, 4),
              ('out_proj.bias', 4)),
        lines(('q_proj_weight', 4, 4), ('k_proj_weight', 4, 3), ('v_proj_weight', 4, 3),
              ('out_proj.weight', 4, 4)),
        lines(('l.0.q_proj.weight', 8, 4), ('l.0.k_proj.weight', 4, 4), ('l.0.v_proj.weight', 4, 4),
              ('l.0.o_proj.weight', 4, 8), ('l.0.q_norm.weight', 2), ('l.0.k_norm.weight', 2)),
        lines(('W_query', 3, 2), ('W_key', 3, 2), ('W_value', 3, 2)),
        lines(('W_query.weight', 2, 3), ('W_key.weight', 2, 3), ('W_value.weight', 2, 3),
              ('mask', 6, 6)),
        lines(*((f'heads.{h}.W_{p}.weight', 2, 3) for h in range(2)
                for p in ('query', 'key', 'value'))),
    ],
}

for target, files in CORPUS.items():
    folder = os.path.join(sys.argv[1], target)
    os.makedirs(folder, exist_ok=True)
    for number, content in enumerate(files):
        with open(os.path.join(folder, f'{number:02}'), 'wb') as file:
            file.write(content)
