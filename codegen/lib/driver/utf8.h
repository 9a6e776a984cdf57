// UTF-8: one character at a time, strict (no surrogates, no overlong forms). Needs: cstdint.
// One UTF-8 character at p: its bytes; where invalid, the bytes of the longest start of one.
struct Utf8 {
    uint64_t bytes;
    bool valid;
    bool partial;  // more bytes could make it valid
};
static inline Utf8 utf8_next(const uint8_t* p, uint64_t left) {
    uint8_t lead = p[0], low = 0x80, high = 0xBF;
    if (lead < 0x80) return {1, true, false};
    if (lead < 0xC2 || lead > 0xF4) return {1, false, false};
    uint64_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead == 0xE0) low = 0xA0;   // shorter forms exist below
    if (lead == 0xED) high = 0x9F;  // surrogates above
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;  // nothing above U+10FFFF
    for (uint64_t i = 1; i < bytes; i++, low = 0x80, high = 0xBF) {
        if (i == left) return {i, false, true};
        if (p[i] < low || p[i] > high) return {i, false, false};
    }
    return {bytes, true, false};
}
static inline bool utf8_valid(const uint8_t* p, uint64_t size) {
    for (uint64_t at = 0; at < size;) {
        Utf8 next = utf8_next(p + at, size - at);
        if (!next.valid) return false;
        at += next.bytes;
    }
    return true;
}
