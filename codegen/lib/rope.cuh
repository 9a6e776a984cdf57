// What a row's pairs are turned by.
template <int PAIRS>
struct Turns {
  float sine[PAIRS], cosine[PAIRS];
};
