#include "attest/problem/text.h"

#include <gtest/gtest.h>

#include <string>

#include "attest/problem/error.h"

namespace attest {
namespace {

TEST(Text, IsTrimmedAtBothEnds) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, ControlCharactersAndWhatIsNotUtf8AreEscapedAndNothingElse) {
  EXPECT_EQ(escaped(""), "");
  for (const std::string text : {"plain", "\xc3\xa9\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80", "a\\x1b"})
    EXPECT_EQ(escaped(text), text);
  // an 8-bit control sequence introducer, one in the place of a character's second byte, a cut character, an overlong
  // form of '/', a surrogate, what is beyond U+10FFFF
  EXPECT_EQ(escaped("a\x9b"
                    "31m"),
            "a\\x9b31m");
  EXPECT_EQ(escaped("\xe2\x82\x9b\xe2\x9b"), "\xe2\x82\x9b\\xe2\\x9b");
  EXPECT_EQ(escaped("\xc2"), "\\xc2");
  EXPECT_EQ(escaped("\xc0\xaf\xff"), "\\xc0\\xaf\\xff");
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(escaped("a\x1b[31m\nb\x7f"), "a\\x1b[31m\\x0ab\\x7f");
  EXPECT_EQ(escaped(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(escaped("\xc2\x9b"
                    "31m\xc2\x80\xc2\x9f"),
            "\\xc2\\x9b31m\\xc2\\x80\\xc2\\x9f");
}

TEST(Text, PrintableIsUtf8WithoutThem) {
  for (const char* text : {"", "plain", "\xc3\xa9\xc2\xa0\xe2\x82\xac"}) EXPECT_TRUE(is_printable(text)) << text;
  for (const char* text : {"a\tb", "\x1b", "\x7f", "\xc2\x80", "\xc2\x9f", "\xc2", "\x9b", "\xff"})
    EXPECT_FALSE(is_printable(text)) << text;
}

TEST(Text, ErrorsAreOneLine) {
  const InvalidInput error("fie\nld", "val\x1bue", "li\x7fmit");
  EXPECT_STREQ(error.what(), "fie\\x0ald: val\\x1bue li\\x7fmit");
  EXPECT_EQ(error.field(), "fie\\x0ald");
}

TEST(Text, IsShortenedBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("a\xc3\xa9\xc3\xa9", 4), "a\xc3\xa9...");
  EXPECT_EQ(shortened("\xf0\x9f\x98\x80", 3), "...");
}

TEST(Text, WithoutItsMiddleKeepsWholeCharacters) {
  EXPECT_EQ(without_middle("abcde", 5), "abcde");
  EXPECT_EQ(without_middle("abcdef", 5), "abc...ef");
  EXPECT_EQ(without_middle("abcdef", 1), "a...");
  EXPECT_EQ(without_middle("ab\xc3\xa9-\xc3\xa9z", 4), "ab...z") << "of both sides no half of one";
  EXPECT_EQ(without_middle("ab\xc3\xa9-\xc3\xa9z", 6), "ab...\xc3\xa9z");
}

}  // namespace
}  // namespace attest
