// The flags of a model's binary, and what they must be together.
struct Options {
    std::string weights, seqs, logits_file, dump_dir;
    std::vector<std::vector<int>> prompts;
    std::vector<int> stop;
    std::vector<std::string> dump;  // patterns
    std::vector<Test> bench;
    int n = -1, context = 0, chunk = MAX_ROWS, device = 0;
    uint32_t seed = 0;  // of synthetic weights
    bool synthetic = false;
    bool json = false, text = false, info = false, all_logits = false, graphs = true;
//% if options.timed
    std::string times;      // the file that launches' times go to
    std::vector<int> only;  // launches of the last step to repeat
    int repeat = 100;
//% else
    int repeat = 5;
//% endif
};
constexpr int MAX_CONTEXT = 1 << 30;

constexpr const char* ABOUT =
    "Generates tokens, greedily. Token ids go to standard output as they come, a line a sequence;\n"
    "everything else goes to standard error.\n";
constexpr Flag<Options> FLAGS[] = {
    {"--weights", "FILE", "the checkpoint, GGUF",
     [](Options& o, const char*, const char* value) { o.weights = value; }},
    {"--synthetic", "SEED", "weights made on the device in place of a checkpoint's",
     [](Options& o, const char* flag, const char* value) {
         o.synthetic = true;
         o.seed = uint32_t(whole_number(flag, value, 0, UINT32_MAX));
     }},
    {"--tokens", "IDS", "one sequence's prompt: 1,2,3",
     [](Options& o, const char* flag, const char* value) {
         o.prompts = {whole_numbers(flag, value, VOCAB - 1)};
     }},
    {"--seqs", "FILE", "prompts of several sequences, one list of ids a line",
     [](Options& o, const char*, const char* value) { o.seqs = value; }},
    {"-n", "COUNT", "tokens to generate, at most (64); 0 takes in the prompts only",
     [](Options& o, const char* flag, const char* value) {
         o.n = int(whole_number(flag, value, 0, MAX_CONTEXT));
     }},
    {"--context", "TOKENS", "room of a sequence (what its prompt and -n need)",
     [](Options& o, const char* flag, const char* value) {
         o.context = int(whole_number(flag, value, 1, MAX_CONTEXT));
     }},
    {"--stop", "IDS", "tokens that end a sequence; they are not printed",
     [](Options& o, const char* flag, const char* value) {
         o.stop = whole_numbers(flag, value, VOCAB - 1);
     }},
    {"--text", nullptr, "prints text, by the checkpoint's vocabulary, in place of ids",
     [](Options& o, const char*, const char*) { o.text = true; }},
    {"--json", nullptr, "a report as the last line of standard error, one JSON object",
     [](Options& o, const char*, const char*) { o.json = true; }},
    {"--info", nullptr, "says what this program is and needs, and runs nothing",
     [](Options& o, const char*, const char*) { o.info = true; }},
    {"--logits", "all|last", "rows whose logits are computed: all, or each prompt's last (last)",
     [](Options& o, const char* flag, const char* value) {
         o.all_logits = !strcmp(value, "all");
         if (!o.all_logits && strcmp(value, "last"))
             fail(USAGE, "%s: all or last is needed, %s was given", flag, shown(value).c_str());
     }},
    {"--logits-file", "FILE", "writes those logits, f32[rows, vocabulary] (.npy), by sequence",
     [](Options& o, const char*, const char* value) { o.logits_file = value; }},
    {"--chunk", "ROWS", "rows of a prompt that one step takes, at most",
     [](Options& o, const char* flag, const char* value) {
         o.chunk = int(whole_number(flag, value, 1, MAX_ROWS));
     }},
    {"--dump", "NAMES", "values to write: all, or names with * between commas",
     [](Options& o, const char*, const char* value) { o.dump = patterns(value); }},
    {"--dump-dir", "FOLDER", "where --dump writes NAME.npy",
     [](Options& o, const char*, const char* value) { o.dump_dir = value; }},
    {"--bench", "TESTS", "times pp512 (a prompt), tg128 (decoding), tg128@4096 (at a depth), ...",
     [](Options& o, const char* flag, const char* value) { o.bench = read_tests(flag, value); }},
    {"--device", "NUMBER", "the GPU (0)",
     [](Options& o, const char* flag, const char* value) {
         o.device = int(whole_number(flag, value, 0, 1023));
     }},
    {"--no-graph", nullptr, "launches each kernel of a step by itself",
     [](Options& o, const char*, const char*) { o.graphs = false; }},
    {"--host-seed", "SEED", "another order of threads (host target only)",
     [](Options&, const char* flag, const char* value) { set_host_seed(flag, value); }},
//% if options.timed
    {"--times", "FILE", "writes when each launch was let through its wait (JSON, see times.h)",
     [](Options& o, const char*, const char* value) { o.times = value; }},
    {"--only", "NUMBERS", "repeats these launches of the last step, in turn, behind the run",
     [](Options& o, const char* flag, const char* value) {
         o.only = whole_numbers(flag, value, MAX_TIMES);
     }},
    {"--repeat", "COUNT", "how often, all of them together (100); runs of each test of --bench",
//% else
    {"--repeat", "COUNT", "runs of each such test, beside one to warm up (5)",
//% endif
     [](Options& o, const char* flag, const char* value) {
         o.repeat = int(whole_number(flag, value, 1, 1 << 20));
     }},
};

// A file of token lists, one a line; the last line may lack its newline.
std::vector<std::vector<int>> read_prompts(const std::string& path) {
    FILE* file = fopen(path.c_str(), "rb");
    if (!file) fail(USAGE, "--seqs: %s cannot be opened: %s", path.c_str(), strerror(errno));
    std::vector<std::vector<int>> prompts;
    char* line = nullptr;
    size_t room = 0;
    ssize_t got;
    while ((got = getline(&line, &room, file)) >= 0) {
        std::string_view text(line, size_t(got));
        while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
        std::string where = "--seqs: line " + std::to_string(prompts.size() + 1);
        prompts.push_back(whole_numbers(where.c_str(), text, VOCAB - 1));
    }
    bool whole = !ferror(file);
    free(line);
    fclose(file);
    if (!whole) fail(USAGE, "--seqs: %s cannot be read", path.c_str());
    if (prompts.empty()) fail(USAGE, "--seqs: %s: a token list a line is needed", path.c_str());
    return prompts;
}
// The context that every sequence gets: refuses where the longest one does not fit.
int choose_context(const Options& o, size_t need, const std::string& who, const char* smaller) {
    size_t most = o.context ? size_t(o.context) : TRAINED_CONTEXT ? TRAINED_CONTEXT : MAX_CONTEXT;
    if (need > most)
        fail(USAGE,
             "a context of %zu tokens is needed (%s), %s is %zu; a smaller %s or a greater "
             "--context is needed",
             need, who.c_str(), o.context ? "--context" : "the trained length", most,
             smaller);
    return o.context ? o.context : int(need);
}
int context_of_prompts(const Options& o) {
    size_t longest = 0;
    for (const std::vector<int>& prompt : o.prompts) longest = std::max(longest, prompt.size());
    std::string who = "a prompt of " + std::to_string(longest) + " and -n " + std::to_string(o.n);
    return choose_context(o, longest + size_t(o.n), who, "-n");
}
int context_of_tests(const Options& o) {
    const Test* longest = &o.bench[0];
    for (const Test& test : o.bench)
        if (test.positions() > longest->positions()) longest = &test;
    return choose_context(o, size_t(longest->positions()), longest->name(),
                          longest->depth ? "test or depth" : "test");
}
// What --bench has no use for, where it was given: its tests say what runs.
const char* beside_bench(const Options& o) {
    const std::pair<const char*, bool> flags[] = {
        {"--tokens", !o.prompts.empty()}, {"--seqs", !o.seqs.empty()},
        {"-n", o.n >= 0},                 {"--stop", !o.stop.empty()},
        {"--text", o.text},               {"--logits all", o.all_logits},
        {"--dump", !o.dump.empty()},      {"--logits-file", !o.logits_file.empty()}};
    for (auto [flag, given] : flags)
        if (given) return flag;
    return nullptr;
}
void check_sources(const Options& o) {
    if (o.weights.empty() && !o.synthetic)
        fail(USAGE, "--weights FILE or --synthetic SEED is needed, nothing was given");
    if (!o.weights.empty() && o.synthetic)
        fail(USAGE, "one of --weights and --synthetic is needed, both were given");
    if (o.synthetic && o.text)
        fail(USAGE, "--text: a checkpoint with a vocabulary is needed, --synthetic has none");
    const char* beside = o.bench.empty() ? nullptr : beside_bench(o);
    if (beside) fail(USAGE, "--bench: its tests alone are needed, %s was given, too", beside);
}
Options read_options(int count, char** words) {
    Options o = read_flags(
        count, words, FLAGS, ABOUT,
        {"--temperature", "--seed", "--top-k", "--top-p", "--min-p", "--profile"});
    if (o.dump.empty() != o.dump_dir.empty())
        fail(USAGE, "--dump and --dump-dir are needed together, one was given");
    if (o.info) return o;
//% if options.timed
    if (!o.only.empty() && o.times.empty())
        fail(USAGE, "--only: --times FILE is needed beside it, which was not given");
//% endif
    check_sources(o);
    if (o.n < 0) o.n = 64;
    if (!o.bench.empty()) {
        o.context = context_of_tests(o);
        return o;
    }
    if (o.prompts.empty() == o.seqs.empty())
        fail(USAGE, "one of --tokens and --seqs is needed, %s given",
             o.seqs.empty() ? "none was" : "both were");
    if (!o.seqs.empty()) o.prompts = read_prompts(o.seqs);
    o.context = context_of_prompts(o);
    return o;
}
