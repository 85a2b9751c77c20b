"""What the command says when something is wrong, and with which status it ends."""
import os
import subprocess
import sys

from common import ATTN, FOLDER, attn, golden, main, path, random, save, write_safetensors
import numpy as np

USAGE, TROUBLE = 2, 3


def files():
    for name in 'qkv':
        save(name + '.npy', random(1, 4, 8))
    save('rank1.npy', random(1, 4))
    save('rank3.npy', random(1, 2, 4, 8))
    save('float_mask.npy', np.ones((4, 4), 'f4'))
    np.savez(path('two.npz'), a=np.ones(2), b=np.ones(2))
    with open(path('text.txt'), 'w', encoding='utf-8') as file:
        file.write('no tensor\n')
    write_safetensors('gpt2.safetensors', {
        'h.0.attn.c_attn.weight': random(1, 6, 18), 'h.0.attn.c_attn.bias': random(2, 18),
        'h.0.attn.c_proj.weight': random(3, 6, 6), 'h.0.attn.c_proj.bias': random(4, 6)})


QKV = ['run', '-q', 'q.npy', '-k', 'k.npy', '-v', 'v.npy']
OUT = ['-o', 'o.npy']
MODEL = ['run', '-m', 'gpt2.safetensors', '-i', 'q.npy', *OUT]

CASES = [
    ([], USAGE, 'Usage: attn COMMAND'),
    (['chek'], USAGE, 'attn: "chek" is no command.\nTry \'attn --help\'.\n'),
    (['run', '--quary', 'x'], USAGE, "attn run: unrecognized option '--quary'\n"
                                     "Try 'attn run --help'.\n"),
    (QKV, USAGE, 'attn run: no output is named: give --output, --weights, --lse, --key-sums or '
                 '--trace'),
    (['run', *OUT], USAGE, 'attn run: give either --query, --key and --value, or --model and '
                           '--input'),
    (['run', '-q', 'q.npy', *OUT], USAGE, 'attn run: --query, --key and --value are needed'),
    ([*QKV, *OUT, '--layer', '0'], USAGE,
     'attn run: --layer has no meaning with --query, --key and --value'),
    ([*MODEL, '--causal'], USAGE, 'attn run: --causal has no meaning with --model'),
    ([*QKV, *OUT, '--softcap', 'x'], USAGE, 'attn run: --softcap: "x" is not a number from 0 to inf'),
    ([*QKV, *OUT, '--threads', '-1'], USAGE,
     'attn run: --threads: "-1" is not a whole number from 0 to 4096'),
    ([*QKV, *OUT, '--window', '3'], USAGE,
     'attn run: --window takes two numbers, left and right, such as 128,0'),
    ([*QKV, *OUT, '--window', '1,2,3'], USAGE, 'is not a list of up to 2 whole numbers'),
    ([*QKV, *OUT, '--diagonal', 'left'], USAGE,
     'attn run: --diagonal: "left" is none of top-left|bottom-right'),
    ([*QKV, *OUT, 'more'], USAGE, 'attn run: unexpected operand "more"'),
    (['check', 'q.npy'], USAGE, 'attn check: missing operand; it takes ACTUAL EXPECTED'),
    (['plot', 'q.npy'], USAGE, 'attn plot: --output is needed'),
    (['convert', 'q.npy', 'o.npy', '--buffers'], USAGE, 'attn convert: --buffers goes with --to'),
    (['bench', '--shape', '1,2,3'], USAGE, 'attn bench: --shape takes four positive numbers'),
    (['run', '-q', 'absent.npy', '-k', 'k.npy', '-v', 'v.npy', *OUT], TROUBLE,
     'attn run: --query: absent.npy: No such file or directory\n'),
    (['run', '-q', 'text.txt', '-k', 'k.npy', '-v', 'v.npy', *OUT], TROUBLE,
     '(is this a .safetensors file?)'),
    (['run', '-q', 'two.npz', '-k', 'k.npy', '-v', 'v.npy', *OUT], TROUBLE,
     'attn run: --query: two.npz: it holds 2 tensors; name one as two.npz:NAME (attn inspect lists '
     'them)\n'),
    (['run', '-q', 'two.npz:c', '-k', 'k.npy', '-v', 'v.npy', *OUT], TROUBLE,
     'attn run: --query: two.npz: no tensor is named "c"\n'),
    (['run', '-q', 'rank1.npy', '-k', 'k.npy', '-v', 'v.npy', *OUT], TROUBLE,
     'attn run: --query: [4]; (T, D), (H, T, D) or (B, H, T, D) is needed\n'),
    (['run', '-q', 'q.npy', '-k', 'rank3.npy', '-v', 'v.npy', *OUT], TROUBLE,
     'attn run: --key: [2,4,8]; query, key and value must have one rank\n'),
    ([*QKV, *OUT, '--keep', 'float_mask.npy'], TROUBLE, 'keep'),
    ([*QKV, '-o', 'absent/o.npy'], TROUBLE,
     'attn run: absent/o.npy: No such file or directory\n'),
    ([*QKV, '-o', 'o.txt'], TROUBLE,
     "attn run: o.txt: the name must end in .npy, .safetensors or '/'\n"),
    (MODEL, USAGE, 'attn run: the file does not tell the number of heads of "h.0.attn." (its '
                   'queries have 6 values); give --heads'),
    ([*MODEL, '--heads', '4'], TROUBLE,
     "attn run: layers: the query projection's 6 rows do not divide into 4 heads\n"),
    ([*MODEL, '--layer', '2', '--heads', '2'], TROUBLE,
     'attn run: gpt2.safetensors: layers: there is no attention layer 2; the layers are '
     'h.0.attn.\n'),
    ([*MODEL, '--heads', '2'], TROUBLE, 'd_in (6)'),
    (['convert', 'two.npz', 'o.npy'], TROUBLE,
     'attn convert: o.npy: 2 tensors do not fit in a .npy file; use .safetensors or a folder\n'),
    (['convert', 'q.npy', 'o.safetensors', '--to', 'gpt2'], TROUBLE,
     'attn convert: q.npy: no attention layer is recognised\n'),
    (['convert', 'gpt2.safetensors', 'o.safetensors', '--to', 'llama', '--heads', '2'], TROUBLE,
     'attn convert: h.0.attn.: layers: layout llama needs a module with rotary positions\n'),
    (['plot', 'q.npy', '-o', 'o.gif'], TROUBLE,
     'attn plot: figure: o.gif: the name must end in .png, .svg or .pdf\n'),
    (['plot', 'q.npy', '-o', 'o.png', '--tokens', 'text.txt'], TROUBLE,
     'attn plot: --tokens: text.txt has 1 lines, but 4 labels are needed\n'),
    (['plot', 'text.txt', '-o', 'o.png'], TROUBLE,
     'attn plot: text.txt: number 1 is none: "no tensor\n'),
]


def test_messages():
    files()
    for arguments, status, message in CASES:
        if arguments[:1] == ['plot'] and 'plot' not in attn('--help')[0].decode():
            continue
        stdout, stderr = attn(*arguments, status=status)
        assert message in stderr, f'attn {" ".join(arguments)}\n{stderr}'
        assert stdout == b'', stdout
    assert not os.path.exists(path('o.npy'))
    assert not os.path.exists(path('o.safetensors'))


def test_nothing_but_results_on_standard_error():
    files()
    for arguments in ([*QKV, *OUT], ['inspect', '--values', golden('rng')], ['version'],
                      ['bench', '--shape', '1,1,8,8', '-n', '2', '--backward']):
        _, stderr = attn(*arguments)
        assert stderr == '', stderr


def test_a_full_standard_output_is_trouble():
    files()
    if not os.access('/dev/full', os.W_OK):
        return
    for arguments in (['inspect', 'q.npy'], ['convert', 'q.npy', '-'], ['version']):
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([ATTN, *arguments], cwd=FOLDER.name, stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        assert done.returncode == TROUBLE, arguments
        assert b'No space left on device' in done.stderr, done.stderr


def test_a_name_from_a_file_does_not_leave_the_folder():
    write_safetensors('evil.safetensors', {'../escaped': np.ones(2)})
    _, stderr = attn('convert', 'evil.safetensors', 'into/', status=TROUBLE)
    assert 'the tensor name "../escaped" cannot be a file name' in stderr
    write_safetensors('evil.safetensors', {'\x1b[31mred': np.ones(2)})
    assert b'\x1b' not in attn('inspect', 'evil.safetensors')[0]


if __name__ == '__main__':
    main(sys.modules['__main__'])
