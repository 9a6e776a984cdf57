// The flags of an op program's binary.
struct Options {
    std::vector<std::string> inputs, dump;  // NAME=FILE; patterns
    std::string out, dump_dir;
    int device = 0;
    bool json = false, info = false;
};
constexpr const char* ABOUT =
    "Runs an op program and prints its results: name and type, then one value a line.\n";
constexpr Flag<Options> FLAGS[] = {
    {"--input", "NAME=FILE",
     "an input from a .npy file, in place of its declared or default values",
     [](Options& o, const char*, const char* value) { o.inputs.push_back(value); }, true},
    {"--out", "FOLDER", "writes each result as NAME.npy, in place of printing it",
     [](Options& o, const char*, const char* value) { o.out = value; }},
    {"--dump", "NAMES", "values to write: all, or names with * between commas",
     [](Options& o, const char*, const char* value) { o.dump = patterns(value); }},
    {"--dump-dir", "FOLDER", "where --dump writes NAME.npy",
     [](Options& o, const char*, const char* value) { o.dump_dir = value; }},
    {"--json", nullptr, "a report as the last line of standard error, one JSON object",
     [](Options& o, const char*, const char*) { o.json = true; }},
    {"--info", nullptr, "says what this program is and needs, and runs nothing",
     [](Options& o, const char*, const char*) { o.info = true; }},
    {"--device", "NUMBER", "the GPU (0)",
     [](Options& o, const char* flag, const char* value) {
         o.device = int(whole_number(flag, value, 0, 1023));
     }},
    {"--host-seed", "SEED", "another order of threads (host target only)",
     [](Options&, const char* flag, const char* value) { set_host_seed(flag, value); }},
};
std::string input_names() {
    std::string out;
    for (int i = 0; i < INPUT_COUNT; i++) out += std::string(" ") + INPUTS[i].value.name;
    return out.empty() ? " none" : out;
}
// The file that was given for an input, or nothing.
std::string input_file(const Options& o, const char* name) {
    for (const std::string& given : o.inputs)
        if (given.substr(0, given.find('=')) == name) return given.substr(given.find('=') + 1);
    return "";
}
void check_inputs(const Options& o) {
    std::vector<std::string> names;
    for (const std::string& given : o.inputs) {
        size_t equals = given.find('=');
        if (equals == given.npos || equals + 1 == given.size())
            fail(USAGE, "--input: NAME=FILE is needed, %s was given", shown(given).c_str());
        std::string name = given.substr(0, equals);
        bool known = false;
        for (int i = 0; i < INPUT_COUNT; i++) known = known || name == INPUTS[i].value.name;
        if (!known)
            fail(USAGE, "--input: an input's name is needed, %s was given; there are:%s",
                 shown(name).c_str(), input_names().c_str());
        if (std::count(names.begin(), names.end(), name))
            fail(USAGE, "--input: one file for %s is needed, a second was given", name.c_str());
        names.push_back(name);
    }
}
Options read_options(int count, char** words) {
    Options o = read_flags(count, words, FLAGS, ABOUT, {"--profile", "--bench"});
    if (o.dump.empty() != o.dump_dir.empty())
        fail(USAGE, "--dump and --dump-dir are needed together, one was given");
    check_inputs(o);
    return o;
}
