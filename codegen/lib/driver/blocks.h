// Inputs of block formats: numbers as blocks of 32 levels with their scale and offset, each rounded
// to the nearest level (compiler/encode.py is the same). BLOCKS: the formats that the inputs have.

// A number rounded once to a float of `fraction` bits whose lowest normal exponent is `lowest`.
uint16_t narrow(double v, int fraction, int lowest) {
    uint16_t sign = std::signbit(v) ? 0x8000 : 0,
             infinite = uint16_t(0x7FFF >> fraction << fraction);
    double size = std::fabs(v);
    if (v != v) return uint16_t(sign | infinite | 1 << (fraction - 1));
    int exponent = size > 0 && !std::isinf(size) ? std::max(std::ilogb(size), lowest) : lowest;
    double whole =
        std::isinf(size) ? HUGE_VAL : std::nearbyint(std::ldexp(size, fraction - exponent));
    if (exponent > -lowest + 1 ||
        std::ldexp(whole, exponent - fraction) >= std::ldexp(1.0, 2 - lowest))
        return sign | infinite;
    return uint16_t(sign | (((exponent - lowest) << fraction) + int(whole)));
}
double widen(uint16_t bits, int fraction, int lowest) {
    int exponent = (bits & 0x7FFF) >> fraction, rest = bits & ((1 << fraction) - 1);
    double size = exponent ? std::ldexp(rest + (1 << fraction), exponent - 1 + lowest - fraction)
                           : std::ldexp(rest, lowest - fraction);
    if (exponent == 0x7FFF >> fraction) size = rest ? NAN : HUGE_VAL;
    return bits & 0x8000 ? -size : size;
}
const Blocks* blocks_of(const char* dtype) {
    for (const Blocks& format : BLOCKS)
        if (format.dtype && !strcmp(format.dtype, dtype)) return &format;
    return nullptr;
}
float half_of(float v) { return float(widen(narrow(double(v), 10, -14), 10, -14)); }
// The number that lies farthest from 0, the first of several; NaN lies farthest.
float farthest(const float* values) {
    float most = values[0];
    for (int i = 1; i < 32; i++)
        if (!(std::fabs(values[i]) <= std::fabs(most)) && most == most) most = values[i];
    return most;
}
struct BlockScale {
    float scale, offset;
};
// The levels span the block's numbers.
BlockScale scale_of(const Blocks& format, const float* values) {
    if (format.offset < 0) {
        float most = farthest(values);
        float divisor = format.bits == 8 ? 127.0f : -float(format.zero);
        return {half_of((format.bits == 8 ? std::fabs(most) : most) / divisor), 0.0f};
    }
    float low = values[0], high = values[0];
    for (int i = 1; i < 32; i++) {
        low = values[i] != values[i] || values[i] < low ? values[i] : low;
        high = values[i] != values[i] || values[i] > high ? values[i] : high;
    }
    return {half_of((high - low) / 15.0f), half_of(low)};
}
// A number's level; 0 where the block has none (NaN).
uint8_t level_of(const Blocks& format, BlockScale by, float value) {
    float least = format.bits == 8 ? -127.0f : 0.0f, most = format.bits == 8 ? 127.0f : 15.0f;
    float steps = by.scale != 0 ? std::nearbyint((value - by.offset) / by.scale) : 0.0f;
    float level = steps + float(format.zero);
    return level == level ? uint8_t(int8_t(std::min(std::max(level, least), most))) : 0;
}
void encode_block(const Blocks& format, const float* values, uint8_t* to) {
    BlockScale by = scale_of(format, values);
    uint16_t scale = narrow(double(by.scale), 10, -14), offset = narrow(double(by.offset), 10, -14);
    memcpy(to + format.scale, &scale, 2);
    if (format.offset >= 0) memcpy(to + format.offset, &offset, 2);
    for (int i = 0; i < (format.bits == 8 ? 32 : 16); i++) {
        uint8_t level = level_of(format, by, values[i]);
        if (format.bits == 4) level |= uint8_t(level_of(format, by, values[i + 16]) << 4);
        to[format.levels + i] = level;
    }
}
std::vector<uint8_t> encoded(const Blocks& format, const std::vector<uint8_t>& numbers) {
    std::vector<uint8_t> out(numbers.size() / 128 * size_t(format.bytes));
    for (size_t block = 0; block < numbers.size() / 128; block++) {
        float values[32];
        memcpy(values, &numbers[block * 128], sizeof values);
        encode_block(format, values, &out[block * size_t(format.bytes)]);
    }
    return out;
}
