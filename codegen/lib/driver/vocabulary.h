// Token ids to text, for byte-level BPE vocabularies (tokenizer.ggml.model gpt2) of a GGUF file.
// Needs: system.h fail.h utf8.h gguf.h.
struct Vocabulary {
    const Gguf* file;
    std::vector<uint64_t> tokens;  // byte offset of each token's string in the file
    const uint8_t* kinds;          // int32 each; null: all are normal
    int bytes[324];                // the byte that a code point below 324 stands for; -1: none
};
static constexpr int TOKEN_NORMAL = 1, TOKEN_USER_DEFINED = 4;
// GPT-2's table: printable Latin-1 characters stand for themselves, the 68 other bytes for U+0100 on.
static inline void vocabulary_bytes(int (&bytes)[324]) {
    int next = 256;
    for (int b = 0; b < 256; b++) bytes[b] = -1;
    for (int b = 0; b < 256; b++) {
        bool plain = (b > 32 && b < 127) || (b > 160 && b != 173);
        bytes[plain ? b : next++] = b;
    }
}
static inline Vocabulary vocabulary_open(const Gguf& file) {
    std::string model;
    const char* path = file.path.c_str();
    if (!file.meta_text("tokenizer.ggml.model", model))
        fail(CHECKPOINT, "%s: the key tokenizer.ggml.model is needed to print text", path);
    if (model != "gpt2")
        fail(CHECKPOINT, "%s: a tokenizer of the kind gpt2 is needed to print text, %s was given; print token ids",
             path, shown(model).c_str());
    const GgufValue* tokens = file.value("tokenizer.ggml.tokens", GGUF_STRING, true);
    const GgufValue* kinds = file.value("tokenizer.ggml.token_type", GGUF_I32, true);
    if (!tokens) fail(CHECKPOINT, "%s: an array of strings tokenizer.ggml.tokens is needed to print text", path);
    if (kinds && kinds->count != tokens->count)
        fail(CHECKPOINT, "%s: as many tokenizer.ggml.token_type as tokens are needed, %llu and %llu were given",
             path, ull(kinds->count), ull(tokens->count));
    Vocabulary v = {&file, {}, kinds ? file.data + kinds->at : nullptr, {}};
    vocabulary_bytes(v.bytes);
    uint64_t at = tokens->at;
    for (uint64_t i = 0; i < tokens->count; i++) {
        v.tokens.push_back(at);
        at += 8 + gguf_load<uint64_t>(file.data + at);
    }
    return v;
}
// The bytes of one token; none for control tokens and for ids beyond the vocabulary (padded heads).
static inline std::string vocabulary_text(const Vocabulary& v, uint64_t id) {
    if (id >= v.tokens.size()) return "";
    int kind = v.kinds ? gguf_load<int32_t>(v.kinds + 4 * id) : TOKEN_NORMAL;
    std::string token = v.file->text(v.tokens[id]), out;
    if (kind != TOKEN_NORMAL) return kind == TOKEN_USER_DEFINED ? token : "";
    for (size_t at = 0; at < token.size();) {
        const uint8_t* p = reinterpret_cast<const uint8_t*>(token.data()) + at;
        uint32_t code = p[0] < 0x80 ? p[0] : (p[0] & 0x1Fu) << 6 | (token.size() - at > 1 ? p[1] & 0x3Fu : 0u);
        if ((p[0] >= 0xE0) || code >= 324 || v.bytes[code] < 0) return token;  // not byte-level
        out += char(v.bytes[code]);
        at += p[0] < 0x80 ? 1 : 2;
    }
    return out;
}
// Text as it comes: an unfinished character is held back, a broken one becomes U+FFFD. It may hold
// NULs: write it by length.
struct TextStream {
    std::string held;
    std::string push(const std::string& bytes) {
        held += bytes;
        std::string out;
        size_t at = 0;
        while (at < held.size()) {
            Utf8 next = utf8_next(reinterpret_cast<const uint8_t*>(held.data()) + at, held.size() - at);
            if (next.partial) break;
            out += next.valid ? held.substr(at, next.bytes) : "\xEF\xBF\xBD";
            at += next.bytes;
        }
        held.erase(0, at);
        return out;
    }
    std::string finish() {
        std::string out = held.empty() ? "" : "\xEF\xBF\xBD";
        held.clear();
        return out;
    }
};
