// The checkpoint's metadata: what the program has read of it when it was compiled must be the same.
// Values are spelled as text (monocu's codegen/metadata.py does the same) and compared as that.
constexpr uint64_t SPELLED_ELEMENTS = 256;  // of an array; longer ones by their count

std::string spelled_real(double v) {
    if (std::isnan(v)) return "nan";
    char text[40];
    snprintf(text, sizeof text, double(float(v)) == v ? "%.9g" : "%.17g", v);
    return text;
}
std::string spelled_text(std::string_view word) {
    std::string out = "'";
    for (char c : word) {
        char text[8];
        bool plain = c >= 32 && c < 127 && c != '\'' && c != '\\';
        snprintf(text, sizeof text, plain ? "%c" : "\\x%02x", uint8_t(c));
        out += text;
    }
    return out + "'";
}
// One number of a GGUF type, at a byte offset.
std::string spelled_number(const uint8_t* from, uint32_t kind) {
    switch (kind) {
        case 0: case GGUF_BOOL: return std::to_string(*from);
        case 1: return std::to_string(gguf_load<int8_t>(from));
        case 2: return std::to_string(gguf_load<uint16_t>(from));
        case 3: return std::to_string(gguf_load<int16_t>(from));
        case GGUF_U32: return std::to_string(gguf_load<uint32_t>(from));
        case GGUF_I32: return std::to_string(gguf_load<int32_t>(from));
        case 6: return spelled_real(gguf_load<float>(from));
        case 10: return std::to_string(gguf_load<uint64_t>(from));
        case 11: return std::to_string(gguf_load<int64_t>(from));
        default: return spelled_real(gguf_load<double>(from));
    }
}
// A key's value; nothing where the file lacks it.
std::string spelled_value(const Gguf& file, const std::string& key) {
    auto found = file.meta.find(key);
    if (found == file.meta.end()) return "";
    const GgufValue& value = found->second;
    if (value.array && value.count > SPELLED_ELEMENTS)
        return "[" + std::to_string(value.count) + " elements]";
    std::string out;
    uint64_t at = value.at;
    for (uint64_t i = 0; i < value.count; i++) {
        if (i) out += ", ";
        if (value.kind == GGUF_STRING) {
            std::string word = file.text(at);
            out += spelled_text(word);
            at += 8 + word.size();
        } else {
            out += spelled_number(file.data + at, value.kind);
            at += GGUF_KIND_BYTES[value.kind];
        }
    }
    return value.array ? "[" + out + "]" : out;
}
// What is wrong with the metadata, a fault a key.
std::vector<std::string> metadata_faults(const Gguf& file) {
    std::vector<std::string> out;
    for (int i = 0; i < METADATA_COUNT; i++) {
        std::string needed = METADATA[i].value, given = spelled_value(file, METADATA[i].key);
        if (given == needed) continue;
        out.push_back("key " + shown(METADATA[i].key) + ": " +
                      (needed.empty() ? "none" : needed.substr(0, 200)) + " is needed, " +
                      (given.empty() ? "it is not there" : given.substr(0, 200) + " was given"));
    }
    return out;
}
