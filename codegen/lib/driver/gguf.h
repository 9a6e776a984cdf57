// An opened GGUF file: metadata and tensors as pointers into the mapping. gguf_open.h makes one.
// Needs: cstdint cstring map string.
static constexpr uint32_t GGUF_U32 = 4, GGUF_I32 = 5, GGUF_BOOL = 7, GGUF_STRING = 8, GGUF_ARRAY = 9;
static inline unsigned long long ull(uint64_t value) { return value; }  // what %llu takes
struct GgufTensor {
    std::string name;
    uint32_t type;      // ggml's number
    int dims;
    uint64_t shape[4];  // outermost first, (out, in) for a matrix; 1 behind the last
    const uint8_t* data;
    uint64_t bytes;
};
struct GgufValue {
    uint32_t kind;     // of the elements, where `array`
    bool array;
    uint64_t count;
    uint64_t at;       // the first element's byte offset
};
template <class T>
static inline T gguf_load(const uint8_t* from) {
    T value;
    memcpy(&value, from, sizeof value);
    return value;
}
struct Gguf {
    std::string path;
    const uint8_t* data = nullptr;
    uint64_t size = 0;
    std::map<std::string, GgufValue> meta;
    std::map<std::string, GgufTensor> tensors;
    const GgufTensor* find(const std::string& name) const {
        auto found = tensors.find(name);
        return found == tensors.end() ? nullptr : &found->second;
    }
    const GgufValue* value(const std::string& key, uint32_t kind, bool array) const {
        auto found = meta.find(key);
        bool fits = found != meta.end() && found->second.kind == kind && found->second.array == array;
        return fits ? &found->second : nullptr;
    }
    bool meta_text(const std::string& key, std::string& out) const {
        const GgufValue* found = value(key, GGUF_STRING, false);
        if (found) out = text(found->at);
        return found != nullptr;
    }
    // The string whose length stands at byte `at`.
    std::string text(uint64_t at) const {
        return std::string(reinterpret_cast<const char*>(data + at + 8), gguf_load<uint64_t>(data + at));
    }
};
