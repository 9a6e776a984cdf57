// How a run ends: fail() with a status of the table, ^C, and files that appear whole or not at all.
enum Status { USAGE = 2, CHECKPOINT = 3, DEVICE = 4, INTERRUPTED = 130 };

// Says what is needed and what was given, and ends the program.
[[noreturn]] __attribute__((format(printf, 2, 3))) void fail(int status, const char* format, ...) {
    fflush(stdout);
    fprintf(stderr, "%s: error: ", PROGRAM);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}
// A word of the user's as an error shows it: quoted, ASCII only, at most 60 bytes of it.
std::string shown(std::string_view word) {
    std::string out = "\"";
    for (char c : word.substr(0, 60)) {
        char text[8];
        bool plain = c >= 32 && c < 127 && c != '"' && c != '\\';
        snprintf(text, sizeof text, plain ? "%c" : "\\x%02x", uint8_t(c));
        out += text;
    }
    return out + (word.size() > 60 ? "\"..." : "\"");
}

volatile sig_atomic_t interrupted = 0;
void note_interrupt(int) { interrupted = 1; }
// The first ^C ends a run between two steps, a second one at once.
void watch_signals() {
    struct sigaction action = {};
    action.sa_handler = note_interrupt;
    action.sa_flags = int(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);  // a closed pipe shows as a failed write
}

// A file being written under another name; close_file gives it its own.
struct NewFile {
    std::string path, temporary;
    FILE* file;
};
std::vector<std::string> unfinished;  // temporary names that exit() removes
void remove_unfinished() {
    for (const std::string& name : unfinished) unlink(name.c_str());
}
// A new file in a file's place, where a link leads; a device or a pipe would be replaced, too.
NewFile open_file(const std::string& name) {
    static bool watched = atexit(remove_unfinished) == 0;
    struct stat status;
    bool is_there = stat(name.c_str(), &status) == 0;
    if (is_there && !S_ISREG(status.st_mode)) fail(USAGE, "%s: a file is needed", name.c_str());
    char place[PATH_MAX];
    std::string path = is_there && realpath(name.c_str(), place) ? place : name;
    NewFile out = {path, path + "." + std::to_string(getpid()) + ".part", nullptr};
    int fd = open(out.temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || !watched) fail(USAGE, "%s: cannot be written: %s", path.c_str(), strerror(errno));
    unfinished.push_back(out.temporary);
    out.file = fdopen(fd, "w+b");
    return out;
}
void write_file(NewFile& out, const void* from, size_t bytes) {
    if (bytes == 0 || fwrite(from, 1, bytes, out.file) == bytes) return;
    fail(DEVICE, "%s: cannot be written: %s", out.path.c_str(), strerror(errno));
}
void close_file(NewFile& out) {
    bool whole = fclose(out.file) == 0 && rename(out.temporary.c_str(), out.path.c_str()) == 0;
    if (!whole) fail(DEVICE, "%s: cannot be written: %s", out.path.c_str(), strerror(errno));
    unfinished.erase(std::find(unfinished.begin(), unfinished.end(), out.temporary));
}
// Makes a folder where there is none; the one above it must exist.
void make_folder(const std::string& path) {
    struct stat status;
    if (mkdir(path.c_str(), 0777) == 0) return;
    bool is_folder = errno == EEXIST && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    if (!is_folder) fail(USAGE, "%s: a folder is needed: %s", path.c_str(), strerror(errno));
}
bool files_are_due = false;  // --logits-file, --dump: written though nobody reads the output
// Standard output, flushed: what reads it sees each token as it comes, and may close it early.
void say(std::string_view text) {
    bool whole = fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0;
    if (whole) return;
    if (errno != EPIPE) fail(DEVICE, "standard output: %s", strerror(errno));
    if (!files_are_due) exit(0);
    if (!freopen("/dev/null", "w", stdout)) fail(DEVICE, "/dev/null: %s", strerror(errno));
}
