"""The shell session in README.md works, and prints what the page says, numbers aside."""
import os
import re
import subprocess
import sys

from common import ATTN, DATA, FOLDER, attn, main, path


def blocks():
    """The commands and the output of the section From the shell."""
    page = os.path.join(DATA, os.pardir, os.pardir, 'README.md')
    with open(page, encoding='utf-8') as file:
        section = file.read().split('\n## From the shell\n')[1].split('\n## ')[0]
    return (re.search(r'```sh\n(.*?)```', section, re.S).group(1),
            re.search(r'```text\n(.*?)```', section, re.S).group(1))


def without_numbers(text):
    return re.sub(r'-?\d[\d.e+-]*', 'N', text)


def test_session():
    commands, expected = blocks()
    if 'plot' not in attn('--help')[0].decode():
        commands = re.sub(r'attn plot.*', '', commands)
    # The interpreter that runs this file has numpy.
    commands = commands.replace('python3', sys.executable)
    environment = dict(os.environ, PATH=os.path.dirname(ATTN) + ':' + os.environ['PATH'])
    done = subprocess.run(['bash', '-e', '-c', commands], cwd=FOLDER.name, env=environment,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert without_numbers(done.stdout.decode()) == without_numbers(expected), done.stdout.decode()
    assert os.path.exists(path('out.npy'))


if __name__ == '__main__':
    main(sys.modules['__main__'])
