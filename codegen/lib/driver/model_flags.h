// The flags of a model's binary, and what they must be together.
struct Options {
    std::string weights, seqs, logits_file, dump_dir;
    std::vector<std::vector<int>> prompts;
    std::vector<int> stop;
    std::vector<std::string> dump;  // patterns
    int n = 64, context = 0, chunk = MAX_ROWS, device = 0;
    bool json = false, text = false, info = false, all_logits = false, graphs = true;
//% if options.timed
    std::string times;      // the file that launches' times go to
    std::vector<int> only;  // launches of the last step to repeat
    int repeat = 100;
//% endif
};
constexpr int MAX_CONTEXT = 1 << 30;

constexpr const char* ABOUT =
    "Generates tokens, greedily. Token ids go to standard output as they come, a line a sequence;\n"
    "everything else goes to standard error.\n";
constexpr Flag<Options> FLAGS[] = {
    {"--weights", "FILE", "the checkpoint, GGUF",
     [](Options& o, const char*, const char* value) { o.weights = value; }},
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
    {"--repeat", "COUNT", "how often, all of them together (100)",
     [](Options& o, const char* flag, const char* value) {
         o.repeat = int(whole_number(flag, value, 1, MAX_TIMES));
     }},
//% endif
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
// The context that every sequence gets; refuses prompts that do not fit with what they shall become.
int choose_context(const Options& o) {
    size_t longest = 0;
    for (const std::vector<int>& prompt : o.prompts) longest = std::max(longest, prompt.size());
    size_t need = longest + size_t(o.n);
    size_t most = o.context ? size_t(o.context) : TRAINED_CONTEXT ? TRAINED_CONTEXT : MAX_CONTEXT;
    if (need > most)
        fail(USAGE,
             "a context of %zu tokens is needed (a prompt of %zu and -n %d), %s is %zu; a smaller "
             "-n "
             "or a greater --context is needed",
             need, longest, o.n, o.context ? "--context" : "the trained length", most);
    return o.context ? o.context : int(need);
}
Options read_options(int count, char** words) {
    Options o = read_flags(
        count, words, FLAGS, ABOUT,
        {"--temperature", "--seed", "--top-k", "--top-p", "--min-p", "--profile", "--bench"});
    if (o.dump.empty() != o.dump_dir.empty())
        fail(USAGE, "--dump and --dump-dir are needed together, one was given");
    if (o.info) return o;
    if (o.weights.empty()) fail(USAGE, "--weights FILE is needed, nothing was given");
    if (o.prompts.empty() == o.seqs.empty())
        fail(USAGE, "one of --tokens and --seqs is needed, %s given",
             o.seqs.empty() ? "none was" : "both were");
    if (!o.seqs.empty()) o.prompts = read_prompts(o.seqs);
    o.context = choose_context(o);
    return o;
}
