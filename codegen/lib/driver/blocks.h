// Inputs of block formats: numbers as blocks of levels with their scales and offsets, each rounded
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
float farthest(const float* values, int count) {
    float most = values[0];
    for (int i = 1; i < count; i++)
        if (!(std::fabs(values[i]) <= std::fabs(most)) && most == most) most = values[i];
    return most;
}
struct BlockScale {
    float scale, offset;
};
// The levels span the group's numbers. A half unless whole numbers make them.
BlockScale scale_of(const Blocks& format, const float* values) {
    bool whole = format.scales >= 0;
    if (format.offset < 0) {
        float most = farthest(values, format.group);
        float divisor = format.bits == 8 ? 127.0f : -float(format.zero);
        float scale = (format.bits == 8 ? std::fabs(most) : most) / divisor;
        return {whole ? scale : half_of(scale), 0.0f};
    }
    float low = values[0], high = values[0];
    for (int i = 1; i < format.group; i++) {
        low = values[i] != values[i] || values[i] < low ? values[i] : low;
        high = values[i] != values[i] || values[i] > high ? values[i] : high;
    }
    if (!whole) return {half_of((high - low) / 15.0f), half_of(low)};
    low = low > 0.0f ? 0.0f : low;
    return {(high - low) / float((1 << format.bits) - 1), low};
}
void store_half(uint8_t* to, float value) {
    uint16_t half = narrow(double(value), 10, -14);
    memcpy(to, &half, 2);
}
float clamped(float number, float least, float most) {
    return number == number ? std::min(std::max(number, least), most) : 0.0f;
}
// A number's level; 0 where the block has none (NaN).
uint8_t level_of(const Blocks& format, BlockScale by, float value) {
    float least = format.bits == 8 ? -127.0f : 0.0f;
    float most = format.bits == 8 ? 127.0f : float((1 << format.bits) - 1);
    float steps = by.scale != 0 ? std::nearbyint((value - by.offset) / by.scale) : 0.0f;
    return uint8_t(int8_t(clamped(steps + float(format.zero), least, most)));
}
// `count` numbers as a half, stored at `to`, times whole numbers of at most `most`: those; the
// numbers become the products.
std::vector<int> store_groups(std::vector<float>& numbers, float most, uint8_t* to) {
    float one = half_of(std::fabs(farthest(&numbers[0], int(numbers.size()))) / most);
    std::vector<int> whole;
    for (float& number : numbers) {
        float steps = one != 0 ? std::nearbyint(number / one) : 0.0f;
        whole.push_back(int(clamped(steps, -most, most)));
        number = float(whole.back()) * one;
    }
    store_half(to, one);
    return whole;
}
// Scales and offsets of a block's groups as its half, or halves, and whole numbers.
void store_scales(const Blocks& format, std::vector<BlockScale>& groups, uint8_t* to) {
    std::vector<float> scale, offset;
    for (BlockScale by : groups) scale.push_back(by.scale), offset.push_back(-by.offset);
    std::vector<int> s = store_groups(scale, format.offset < 0 ? 127.0f : 63.0f, to + format.scale);
    uint8_t* at = to + format.scales;
    if (format.offset < 0) {
        for (size_t g = 0; g < groups.size(); g++) at[g] = uint8_t(s[g]);
    } else {
        std::vector<int> t = store_groups(offset, 63.0f, to + format.offset);
        for (int g = 0; g < 4; g++) {
            at[g] = uint8_t(s[g] | s[4 + g] >> 4 << 6);
            at[4 + g] = uint8_t(t[g] | t[4 + g] >> 4 << 6);
            at[8 + g] = uint8_t((s[4 + g] & 15) | t[4 + g] << 4);
        }
    }
    for (size_t g = 0; g < groups.size(); g++) groups[g] = {scale[g], -offset[g]};
}
void store_level(const Blocks& format, int i, uint8_t level, uint8_t* to) {
    int run = format.run, bits = format.bits - 4, each = bits > 0 ? 8 / bits : 1;
    if (format.bits == 8) {
        to[format.levels + i] = level;
        return;
    }
    to[format.levels + i / (2 * run) * run + i % run] |= uint8_t((level & 15) << i / run % 2 * 4);
    if (bits > 0)
        to[format.high + i / (32 * each) * 32 + i % 32] |=
            uint8_t(level >> 4 << i / 32 % each * bits);
}
void encode_block(const Blocks& format, const float* values, uint8_t* to) {
    std::vector<BlockScale> groups;
    for (int i = 0; i < format.weights; i += format.group)
        groups.push_back(scale_of(format, values + i));
    if (format.scales >= 0) {
        store_scales(format, groups, to);
    } else {
        store_half(to + format.scale, groups[0].scale);
        if (format.offset >= 0) store_half(to + format.offset, groups[0].offset);
    }
    for (int i = 0; i < format.weights; i++)
        store_level(format, i, level_of(format, groups[size_t(i / format.group)], values[i]), to);
}
std::vector<uint8_t> encoded(const Blocks& format, const std::vector<uint8_t>& numbers) {
    size_t each = size_t(format.weights), count = numbers.size() / 4 / each;
    std::vector<uint8_t> out(count * size_t(format.bytes));
    std::vector<float> values(each);
    for (size_t block = 0; block < count; block++) {
        memcpy(&values[0], &numbers[block * each * 4], each * 4);
        encode_block(format, &values[0], &out[block * size_t(format.bytes)]);
    }
    return out;
}
