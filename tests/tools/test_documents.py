"""Every option is in the help, the man page and the completions; every command has an example."""
import re
import shutil
import subprocess
import sys

from common import attn, main, path


def options():
    """[(command, option)] from the command's own list."""
    return [tuple(line.split()) for line in attn('--generate=options')[0].decode().splitlines()]


def test_there_are_options():
    found = options()
    assert len(found) > 100
    assert {command for command, _ in found} >= {'run', 'inspect', 'convert', 'check', 'oracle',
                                                 'bench', 'version'}


def section(text, start, stop):
    part = text[text.index(start):]
    return part[:part.index(stop, len(start))] if stop in part[len(start):] else part


def test_help():
    for command, option in options():
        help_text = attn(command, '--help')[0].decode()
        assert re.search(re.escape(option) + r'(=|\s)', help_text), (command, option)
        assert '\nExample:\n  attn ' in help_text, command
        assert max(map(len, help_text.splitlines())) < 100
        assert attn('help', command)[0].decode() == help_text


def test_examples_name_real_options():
    known = set(options())
    for command in {command for command, _ in known}:
        help_text = attn(command, '--help')[0].decode()
        for line in help_text[help_text.index('\nExample:\n'):].splitlines():
            if line.startswith('  attn '):
                used = line.split()[1]
                for option in re.findall(r'--[a-z-]+', line):
                    assert (used, option) in known, line


def test_man():
    man = attn('--generate=man')[0].decode()
    for command, option in options():
        part = section(man, f'.SS attn {command}\n', '.SS attn ')
        assert option.replace('-', r'\-') + r'\fR' in part, (command, option)
    for line in man.splitlines():
        # Every request at the start of a line is meant as one.
        assert not line.startswith('.') or re.match(r'\.(TH|SH|SS|TP|PP|B|nf|fi)\b', line), line
    assert 'EXIT STATUS' in man
    if shutil.which('groff'):
        done = subprocess.run(['groff', '-man', '-Tutf8', '-ww'], input=man.encode(),
                              capture_output=True, check=False)
        assert done.returncode == 0 and done.stderr == b'', done.stderr


def test_completions():
    bash = attn('--generate=bash')[0].decode()
    zsh = attn('--generate=zsh')[0].decode()
    fish = attn('--generate=fish')[0].decode()
    for command, option in options():
        assert re.search(rf'^    {command}\) words=.* {option}[= \']', bash, re.M), (command, option)
        part = section(zsh, f'    {command})\n', ' ;;')
        assert re.search(rf"'{option}=?\[", part), (command, option)
        assert re.search(rf'subcommand_from {command}\' -l {option[2:]} ', fish), (command, option)


def complete(*words):
    """What bash offers for the last word."""
    script = f'''source {path("attn.bash")}
COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
COMP_CWORD={len(words) - 1}
_attn attn
printf '%s\\n' "${{COMPREPLY[@]}}"
'''
    with open(path('attn.bash'), 'wb') as file:
        file.write(attn('--generate=bash')[0])
    done = subprocess.run(['bash', '-c', script], capture_output=True, check=False)
    return done.stdout.decode().split()


def test_bash_completes():
    assert complete('attn', 'insp') == ['inspect']
    assert complete('attn', 'run', '--quer') == ['--query=', '--query-lengths=', '--query-starts=']
    assert complete('attn', 'run', '--tier', 'avx') == ['avx2', 'avx512']
    assert complete('attn', 'run', '--tier', '=', 'ne') == ['neon']
    assert complete('attn', 'convert', '--to', 'g') == ['gpt2']


def test_other_shells_accept_their_files():
    for shell, kind in (('bash', 'bash'), ('zsh', 'zsh'), ('fish', 'fish')):
        if shutil.which(shell):
            text = attn('--generate=' + kind)[0]
            done = subprocess.run([shell, '-n'], input=text, capture_output=True, check=False)
            assert done.returncode == 0, (shell, done.stderr)


if __name__ == '__main__':
    main(sys.modules['__main__'])
