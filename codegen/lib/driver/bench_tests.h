// --bench: llama-bench's tests by their names: pp512 takes in a prompt, tg128 decodes, tg128@4096 behind
// so many tokens. What decodes takes one token at least to begin with.
struct Test {
    bool decodes;
    int tokens, depth;
    // Tokens that are in the cache before the time counts.
    int before() const { return decodes ? std::max(depth, 1) : depth; }
    int positions() const { return before() + tokens; }
    std::string name() const {
        std::string out = (decodes ? "tg" : "pp") + std::to_string(tokens);
        return depth ? out + " @ d" + std::to_string(depth) : out;
    }
};
std::vector<Test> read_tests(const char* flag, std::string_view text) {
    std::vector<Test> tests;
    for (std::string_view part : split_commas(text)) {
        std::string_view kind = part.substr(0, 2), rest = part.substr(kind.size());
        if (kind != "pp" && kind != "tg")
            fail(USAGE, "%s: tests as pp512, tg128 or tg128@4096 are needed, %s was given", flag,
                 shown(part).c_str());
        size_t at = rest.find('@');
        long long tokens = whole_number(flag, rest.substr(0, at), 1, 1 << 24);
        long long depth = at == rest.npos ? 0 : whole_number(flag, rest.substr(at + 1), 0, 1 << 24);
        tests.push_back({kind == "tg", int(tokens), int(depth)});
    }
    return tests;
}
