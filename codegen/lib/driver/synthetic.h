// --synthetic: a checkpoint without a file. It has the tensors that the program needs; their bytes are
// made on the device (runtime/hashed_weights.py makes the same).

// A tensor's key: FNV-1a of its name, begun with the seed.
uint32_t tensor_key(uint32_t seed, const std::string& name) {
    uint32_t key = 2166136261u ^ seed;
    for (char c : name) key = (key ^ uint8_t(c)) * 16777619u;
    return key;
}
GgufTensor synthetic_tensor(const Family& family, int i) {
    GgufTensor t = {name_of(family.name, i), family.type, family.dims, {1, 1, 1, 1}, nullptr, 0};
    std::copy(family.shape, family.shape + family.dims, t.shape);
    for (const GgufType& type : GGUF_TYPES)
        if (type.id == t.type)
            t.bytes = t.shape[0] * t.shape[1] * t.shape[2] / type.block * type.bytes;
    return t;
}
Gguf synthetic_checkpoint() {
    Gguf file;
    file.path = "--synthetic";
    for (const Family& family : WEIGHTS)
        for (int i = family.first; i < family.first + family.count; i++)
            file.tensors[name_of(family.name, i)] = synthetic_tensor(family, i);
    return file;
}
