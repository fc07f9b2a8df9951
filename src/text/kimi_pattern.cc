#include "text/kimi_pattern.h"

namespace headrace {
namespace {

/// Script Han of Unicode 17, spelled out: the installed PCRE2 may know less, and its `\p{Han}` means the script
/// extensions, which take in punctuation.
constexpr char kHan[] =
    R"(\x{2E80}-\x{2E99}\x{2E9B}-\x{2EF3}\x{2F00}-\x{2FD5}\x{3005}\x{3007}\x{3021}-\x{3029}\x{3038}-\x{303B})"
    R"(\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FA6D}\x{FA70}-\x{FAD9}\x{16FE2}\x{16FE3}\x{16FF0}-\x{16FF6})"
    R"(\x{20000}-\x{2A6DF}\x{2A700}-\x{2B81D}\x{2B820}-\x{2CEAD}\x{2CEB0}-\x{2EBE0}\x{2EBF0}-\x{2EE5D})"
    R"(\x{2F800}-\x{2FA1D}\x{30000}-\x{3134A}\x{31350}-\x{33479})";

/// What of it was assigned after Unicode 14 (Debian 12's PCRE2): letters that `\p{L}` may not know, and numbers that
/// `\p{N}` may not. Letters, marks and numbers of other scripts that are newer than the PCRE2 count as symbols.
constexpr char kNewHanLetters[] =
    R"(\x{16FF2}\x{16FF3}\x{2B739}-\x{2B73F}\x{2CEA2}-\x{2CEAD}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{33479})";
constexpr char kNewHanNumbers[] = R"(\x{16FF4}-\x{16FF6})";

/// The property White_Space. Not `\s`: PCRE2 adds U+180E.
constexpr char kWhiteSpace[] =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

}  // namespace

std::string kimi_pattern() {
  const std::string han = kHan;
  const std::string space = kWhiteSpace;
  const std::string number = R"(\p{N})" + std::string(kNewHanNumbers);
  const std::string word_character = R"(\p{L})" + number + kNewHanLetters;
  // PCRE2 has no intersection of classes, so "these categories and not Han" is written as "none of the others, nor
  // Han". One class, because a lookahead before every character would make a run cost a backtracking frame per
  // character.
  const std::string upper = R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C})" + han + "]";
  const std::string lower = R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C})" + han + "]";
  const std::string before_word = R"([^\r\n)" + word_character + "]?";
  const std::string contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";      // Caseless in Unicode: ſ (U+017F) is an s.
  return "[" + han + "]+" +                                             //
         "|" + before_word + upper + "*" + lower + "+" + contraction +  //
         "|" + before_word + upper + "+" + lower + "*" + contraction +  //
         "|[" + number + "]{1,3}" +                                     //
         "|" + " ?[^" + space + word_character + R"(]+[\r\n]*)" +       //
         "|[" + space + R"(]*[\r\n]+)" +                                //
         "|[" + space + "]+(?![^" + space + "])" +                      //
         "|[" + space + "]+";
}

}  // namespace headrace
