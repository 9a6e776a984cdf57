// Command lines: a table of flags, each given at most once unless it repeats, every value read to its end.
template <class Options>
struct Flag {
    const char* name;
    const char* value;  // what stands for its value in --help; null: a switch
    const char* help;
    void (*set)(Options&, const char* flag, const char* value);
    bool repeats = false;
};

long long whole_number(const char* flag, std::string_view text, long long least, long long most) {
    long long number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    bool read = error == std::errc() && end == text.data() + text.size();
    if (!read || number < least || number > most)
        fail(USAGE, "%s: a whole number from %lld to %lld is needed, %s was given", flag, least,
             most, shown(text).c_str());
    return number;
}
// The parts between commas; an empty text is one empty part.
std::vector<std::string_view> split_commas(std::string_view text) {
    std::vector<std::string_view> parts;
    for (;;) {
        size_t comma = text.find(',');
        parts.push_back(text.substr(0, comma));
        if (comma == text.npos) return parts;
        text.remove_prefix(comma + 1);
    }
}
std::vector<int> whole_numbers(const char* flag, std::string_view text, int most) {
    std::vector<int> numbers;
    for (std::string_view part : split_commas(text))
        numbers.push_back(int(whole_number(flag, part, 0, most)));
    return numbers;
}

template <class Options, size_t N>
void print_help(const Flag<Options> (&flags)[N], const char* about) {
    std::string text = about;
    for (const Flag<Options>& flag : flags) {
        std::string left = std::string("  ") + flag.name + (flag.value ? " " : "") +
                           (flag.value ? flag.value : "");
        left.resize(std::max<size_t>(left.size() + 1, 24), ' ');
        text += left + flag.help + "\n";
    }
    say(text);
}
template <class Options, size_t N>
const Flag<Options>* find_flag(const Flag<Options> (&flags)[N], const std::string& name) {
    for (const Flag<Options>& flag : flags)
        if (name == flag.name) return &flag;
    return nullptr;
}
template <class Options, size_t N>
[[noreturn]] void fail_unknown(const Flag<Options> (&flags)[N], const std::string& word) {
    std::string known;
    for (const Flag<Options>& flag : flags) known += std::string(" ") + flag.name;
    fail(USAGE, "a flag is needed, %s was given; there are:%s --help", shown(word).c_str(),
         known.c_str());
}
// Reads `--flag value` and `--flag=value`. `planned`: flags to come, refused as such.
template <class Options, size_t N>
Options read_flags(int count, char** words, const Flag<Options> (&flags)[N], const char* about,
                   const std::vector<std::string>& planned) {
    Options options;
    std::vector<std::string> given;
    for (int i = 1; i < count; i++) {
        std::string name = words[i];
        size_t equals = name.compare(0, 2, "--") == 0 ? name.find('=') : name.npos;
        name = name.substr(0, equals);
        if (name == "--help") {
            print_help(flags, about);
            exit(0);
        }
        if (std::count(planned.begin(), planned.end(), name))
            fail(USAGE, "%s: planned, not there yet", name.c_str());
        const Flag<Options>* flag = find_flag(flags, name);
        if (!flag) fail_unknown(flags, words[i]);
        if (!flag->repeats && std::count(given.begin(), given.end(), name))
            fail(USAGE, "%s: one is needed, a second was given", flag->name);
        given.push_back(name);
        const char* value = equals == name.npos ? nullptr : words[i] + equals + 1;
        if (!flag->value && value)
            fail(USAGE, "%s: takes no value, %s was given", flag->name, shown(value).c_str());
        if (flag->value && !value && ++i == count)
            fail(USAGE, "%s: %s is needed, nothing was given", flag->name, flag->value);
        if (flag->value && !value) value = words[i];
        if (flag->value && !*value)
            fail(USAGE, "%s: %s is needed, \"\" was given", flag->name, flag->value);
        flag->set(options, flag->name, value);
    }
    return options;
}
// The order of the host target's threads. A GPU has its own.
void set_host_seed(const char* flag, const char* value) {
    unsigned seed = unsigned(whole_number(flag, value, 0, UINT32_MAX));
#ifdef __CUDACC__
    fail(USAGE, "%s %u: a build for the host target is needed, this one is for cuda", flag, seed);
#else
    monocu_host_seed(seed);
#endif
}
