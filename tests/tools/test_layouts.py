"""attn inspect and attn convert on models in every layout."""
import sys

from common import attn, close, load, main, random, read_safetensors, save, write_safetensors
import numpy as np


def gpt2(layers, width=6):
    model = {'wte.weight': random(1, 11, width)}
    for n in range(layers):
        model.update({
            f'h.{n}.attn.c_attn.weight': random(10 * n + 2, width, 3 * width),
            f'h.{n}.attn.c_attn.bias': random(10 * n + 3, 3 * width),
            f'h.{n}.attn.c_proj.weight': random(10 * n + 4, width, width),
            f'h.{n}.attn.c_proj.bias': random(10 * n + 5, width),
            f'h.{n}.attn.bias': np.tril(np.ones((1, 1, 8, 8), 'f4')),
            f'h.{n}.attn.masked_bias': np.float32(-1e4)})
    return model


def test_inspect_lists_layers():
    write_safetensors('gpt2.safetensors', gpt2(3))
    out = attn('inspect', 'gpt2.safetensors')[0].decode()
    assert 'safetensors, 19 tensors,' in out
    assert 'wte.weight              float32   [11,6]' in out, out
    for n in range(3):
        assert (f'layer {n}  gpt2  "h.{n}.attn."  multi_head_attention  d_in 6  d_out 6'
                '  168 values') in out, out
    out = attn('inspect', '--layers', 'gpt2.safetensors')[0].decode()
    assert 'wte' not in out
    save('x.npy', np.array([1, np.nan, 3], 'f4'))
    out = attn('inspect', '--values', 'x.npy')[0].decode()
    assert 'min 1  max 3  mean 2  not finite 1' in out, out


def test_one_layer_becomes_ours():
    model = gpt2(2)
    write_safetensors('gpt2.safetensors', model)
    attn('convert', 'gpt2.safetensors', 'ours.safetensors', '--layer', '1', '--to', 'attn',
         '--heads', '2', '--new-prefix', '', '--buffers')
    tensors, _ = read_safetensors('ours.safetensors')
    joint = model['h.1.attn.c_attn.weight']
    assert np.array_equal(tensors['W_query.weight'], joint[:, :6].T)
    assert np.array_equal(tensors['W_key.weight'], joint[:, 6:12].T)
    assert np.array_equal(tensors['W_value.bias'], model['h.1.attn.c_attn.bias'][12:])
    assert np.array_equal(tensors['out_proj.weight'], model['h.1.attn.c_proj.weight'].T)
    assert np.array_equal(tensors['mask'], np.triu(np.ones((8, 8)), 1))
    assert len(tensors) == 9


def test_all_layers_and_back():
    model = gpt2(3)
    write_safetensors('gpt2.safetensors', model)
    attn('convert', 'gpt2.safetensors', 'torch.safetensors', '--to', 'torch', '--heads', '2',
         '--keep-rest')
    tensors, _ = read_safetensors('torch.safetensors')
    assert np.array_equal(tensors['wte.weight'], model['wte.weight'])
    assert np.array_equal(tensors['h.2.attn.in_proj_weight'], model['h.2.attn.c_attn.weight'].T)
    attn('convert', 'torch.safetensors', 'back.safetensors', '--to', 'gpt2', '--heads', '2',
         '--keep-rest')
    back, _ = read_safetensors('back.safetensors')
    for name, array in model.items():
        if not name.endswith(('attn.bias', 'masked_bias')):
            assert np.array_equal(back[name], array), name


def test_the_same_output_from_every_layout():
    write_safetensors('gpt2.safetensors', gpt2(1))
    save('x.npy', random(9, 2, 5, 6))
    attn('run', '-m', 'gpt2.safetensors', '-i', 'x.npy', '--heads', '3', '-o', 'expected.npy')
    for layout in ('attn', 'torch', 'gpt2'):
        attn('convert', 'gpt2.safetensors', 'other.safetensors', '--to', layout, '--heads', '3')
        options = ['--heads', '3']
        if layout == 'torch':
            # torch's module is causal only when its caller says so.
            options += ['--context-length', '8']
            attn('run', '-m', 'other.safetensors', '-i', 'x.npy', '-o', 'full.npy', *options)
            attn('check', 'full.npy', 'expected.npy', '-q', status=1)
            continue
        attn('run', '-m', 'other.safetensors', '-i', 'x.npy', '-o', 'actual.npy', *options)
        attn('check', 'actual.npy', 'expected.npy', '-q')
    attn('run', '-m', 'gpt2.safetensors', '-i', 'x.npy', '--heads', '3', '--no-causal', '-o',
         'actual.npy')
    attn('check', 'full.npy', 'actual.npy', '-q')


def test_llama_round_trip():
    shapes = {'q_proj': (8, 6), 'k_proj': (4, 6), 'v_proj': (4, 6), 'o_proj': (6, 8)}
    model = {f'model.layers.0.self_attn.{name}.weight': random(i, *shape)
             for i, (name, shape) in enumerate(shapes.items())}
    write_safetensors('llama.safetensors', model)
    attn('convert', 'llama.safetensors', 'ours.safetensors', '--to', 'attn', '--heads', '4')
    attn('convert', 'ours.safetensors', 'back.safetensors', '--to', 'llama', '--heads', '4',
         '--rotary', 'half-split')
    back, _ = read_safetensors('back.safetensors')
    assert set(back) == set(model)
    for name, array in model.items():
        assert np.array_equal(back[name], array), name


def test_torch_state_dicts():
    """Exchanges state dicts with torch itself, where it is installed."""
    try:
        import torch
    except ImportError:
        print('        torch is not installed')
        return
    torch.manual_seed(1)
    for bias in (True, False):
        module = torch.nn.MultiheadAttention(8, 2, bias=bias, batch_first=True)
        state = {name: value.numpy() for name, value in module.state_dict().items()}
        write_safetensors('torch.safetensors', state)
        x = torch.randn(2, 5, 8)
        save('x.npy', x.numpy())
        attn('run', '-m', 'torch.safetensors', '-i', 'x.npy', '--heads', '2', '-o', 'o.npy')
        close(load('o.npy'), module(x, x, x)[0].detach().numpy(), 1e-5)
        attn('convert', 'torch.safetensors', 'gpt2.safetensors', '--to', 'gpt2', '--heads', '2')
        attn('convert', 'gpt2.safetensors', 'back.safetensors', '--to', 'torch', '--heads', '2')
        back, _ = read_safetensors('back.safetensors')
        module.load_state_dict({name: torch.tensor(back[name]) for name in state})


if __name__ == '__main__':
    main(sys.modules['__main__'])
