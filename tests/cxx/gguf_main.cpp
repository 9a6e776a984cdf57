// The driver's checkpoint reader alone, for tests: `read PATH...` prints a verdict a file (its tensor
// table, or the fault that it ends by), `spell PATH` its metadata, `text PATH ID...` the text of token ids, as a stream.
#include "system.h"

static const char* const PROGRAM = "gguf_main";
#define fail fail_and_exit  // ours throws, so that one process reads many files
#include "fail.h"
#undef fail

struct Fault {
    int code;
    std::string message;
};
[[noreturn]] __attribute__((format(printf, 2, 3))) static void fail(int code, const char* format, ...) {
    char message[1 << 16];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    throw Fault{code, message};
}
#include "utf8.h"
#include "gguf.h"
#include "gguf_open.h"
#include "vocabulary.h"
struct MetaValue {
    const char *key, *value;
};
static constexpr int METADATA_COUNT = 0;
static constexpr MetaValue METADATA[] = {{}};
#include "metadata.h"

static void read(const char* path) try {
    Gguf file = gguf_open(path);
    printf("ok %zu keys\n", file.meta.size());
    unsigned sum = 0;
    for (auto& [name, t] : file.tensors) {
        printf("%s %u %llu,%llu,%llu,%llu %td %llu\n", name.c_str(), t.type, ull(t.shape[0]), ull(t.shape[1]),
               ull(t.shape[2]), ull(t.shape[3]), t.data - file.data, ull(t.bytes));
        for (uint64_t i = 0; i < t.bytes; i += 4096) sum += t.data[i];
        if (t.bytes) sum += t.data[t.bytes - 1];
    }
    fprintf(stderr, "%u\n", sum);  // so that every tensor's ends are read
    munmap(const_cast<uint8_t*>(file.data), file.size);
} catch (const Fault& fault) {
    printf("fault %d %s\n", fault.code, fault.message.c_str());
}
// Each key's value as it is spelled.
static int spell(const char* path) {
    Gguf file = gguf_open(path);
    for (auto& [key, value] : file.meta)
        printf("%s %s\n", key.c_str(), spelled_value(file, key).c_str());
    return int(metadata_faults(file).size());
}
static int text(int count, char** words) try {
    Gguf file = gguf_open(words[0]);
    Vocabulary vocabulary = vocabulary_open(file);
    TextStream stream;
    for (int i = 1; i < count; i++)
        say(stream.push(vocabulary_text(vocabulary, strtoull(words[i], nullptr, 10))));
    say(stream.finish());
    return 0;
} catch (const Fault& fault) {
    fprintf(stderr, "%s\n", fault.message.c_str());
    return fault.code;
}
int main(int argc, char** argv) {
    if (argc > 2 && !strcmp(argv[1], "text")) return text(argc - 2, argv + 2);
    if (argc == 3 && !strcmp(argv[1], "spell")) return spell(argv[2]);
    for (int i = 2; i < argc; i++) {
        read(argv[i]);
        puts("--");
    }
}
