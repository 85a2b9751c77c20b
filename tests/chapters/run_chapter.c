#define _GNU_SOURCE // posix_openpt, memfd_create

#include "run_chapter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/unit.h"

static int memory_file(void)
{
    const int file = memfd_create("chapter", MFD_CLOEXEC);
    assert_true(file >= 0);
    return file;
}

static char *read_all(int file)
{
    const off_t size = lseek(file, 0, SEEK_END);
    assert_true(size >= 0);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(pread(file, text, (size_t)size, 0), size);
    text[size] = '\0';
    return text;
}

char *read_text(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return NULL;
    }
    char *text = read_all(file);
    close(file);
    return text;
}

char *fresh_path(const char *name)
{
    static int count;
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s.%d.%d", CHAPTER03_SCRATCH, name, (int)getpid(), count++) >
                0);
    unlink(path);
    return path;
}

// In the child: the program with these streams.
static void become_program(const chapter_call *call, int input, int output, int errors)
{
    static const char *const cleared[] = {"LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "TERM"};
    for (size_t i = 0; i < sizeof cleared / sizeof cleared[0]; ++i) {
        unsetenv(cleared[i]);
    }
    for (int i = 0; i < MAX_VARIABLES && call->environment[i]; ++i) {
        putenv((char *)(uintptr_t)call->environment[i]);
    }
    const char *arguments[MAX_ARGUMENTS + 2] = {CHAPTER03_PROGRAM};
    for (int i = 0; i < MAX_ARGUMENTS && call->arguments[i]; ++i) {
        arguments[i + 1] = call->arguments[i];
    }
    dup2(input, STDIN_FILENO);
    const int given = call->output_path ? open(call->output_path, O_WRONLY | O_CLOEXEC) : output;
    dup2(given, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execv(CHAPTER03_PROGRAM, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static int exit_status(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

chapter_process chapter_start(const chapter_call *call)
{
    chapter_process process = {.output = memory_file(), .errors = memory_file()};
    const int input = memory_file();
    if (call->input) {
        const size_t size = strlen(call->input);
        assert_int_equal(pwrite(input, call->input, size, 0), size);
    }
    fflush(NULL);
    process.pid = fork();
    assert_true(process.pid >= 0);
    if (process.pid == 0) {
        become_program(call, input, process.output, process.errors);
    }
    close(input);
    return process;
}

char *chapter_output_so_far(const chapter_process *process)
{
    return read_all(process->output);
}

chapter_result chapter_wait(chapter_process *process)
{
    chapter_result result = {.status = exit_status(process->pid)};
    result.output = read_all(process->output);
    result.errors = read_all(process->errors);
    close(process->output);
    close(process->errors);
    return result;
}

// On a pseudo-terminal: feeds `input` and collects everything until the program closes it.
static chapter_result run_on_terminal(const chapter_call *call)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setsid();
        const int terminal = open(ptsname(master), O_RDWR);
        become_program(call, terminal, terminal, terminal);
    }
    const char *rest = call->input ? call->input : "";
    size_t size = 0;
    char *text = NULL;
    for (;;) {
        char chunk[4096];
        struct pollfd ready = {.fd = master, .events = POLLIN};
        // Nothing to read for a while means that the program waits for a key.
        if (poll(&ready, 1, 200) == 0 && *rest) {
            assert_int_equal(write(master, rest++, 1), 1);
            continue;
        }
        const ssize_t count = read(master, chunk, sizeof chunk);
        if (count <= 0) {
            break; // EIO: the program has ended
        }
        text = realloc(text, size + (size_t)count + 1);
        assert_non_null(text);
        memcpy(text + size, chunk, (size_t)count);
        size += (size_t)count;
        text[size] = '\0';
    }
    close(master);
    return (chapter_result){
        .status = exit_status(pid), .output = text ? text : strdup(""), .errors = strdup("")};
}

chapter_result run_chapter(const chapter_call *call)
{
    if (call->terminal) {
        return run_on_terminal(call);
    }
    chapter_process process = chapter_start(call);
    return chapter_wait(&process);
}

void chapter_free(chapter_result *result)
{
    free(result->output);
    free(result->errors);
}
