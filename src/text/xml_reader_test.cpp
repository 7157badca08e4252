// SPDX-License-Identifier: Apache-2.0
#include "text/xml_reader.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace feedline::text {
namespace {

// Returns each element as "root/child=text;", or the error.
std::string elements_of(std::string_view document) {
  std::string found;
  const auto read = read_xml(document, [&](const XmlElement& element) {
    for (const std::string& name : element.path) found += (&name == element.path.data() ? "" : "/") + name;
    found += "=" + std::string(element.text) + ";";
    return true;
  });
  return read ? found : read.error().what;
}

TEST(XmlReader, ReturnsElementsWithTheirText) {
  EXPECT_EQ(elements_of("<?xml version='1.0'?>\n<!-- c --><a x=\"1>2\" y='\"'><b>t &lt;&amp;&#65;&#x20ac;</b><c/><d "
                        "></d></a>\n"),
            "a/b=t <&A\xe2\x82\xac;a/c=;a/d=;a=;");
  EXPECT_EQ(elements_of("<a>x<![CDATA[<y>&]]>z</a>"), "a=x<y>&z;");
  EXPECT_EQ(elements_of("<a>x<!-- c -->y<b>inner</b>z</a>"), "a/b=inner;a=xyz;");
  EXPECT_EQ(elements_of("\n <?xml version='1.0'?><a>x</a>"), "a=x;") << "white space before the declaration";
  EXPECT_EQ(elements_of("\xef\xbb\xbf<a>\xc3\xa9</a>"), "a=\xc3\xa9;") << "a byte-order mark";
  EXPECT_EQ(elements_of("<!DOCTYPE a SYSTEM 'a.dtd'><a>x</a>"), "a=x;") << "a document type without entities";
}

TEST(XmlReader, StopsWhenAsked) {
  int elements = 0;
  EXPECT_TRUE(read_xml("<a><b></b><c/></a", [&](const XmlElement& element) {
    ++elements;
    EXPECT_EQ(element.name(), "b");
    EXPECT_EQ(element.offset, 6u);
    return false;
  })) << "the rest of the document is not read";
  EXPECT_EQ(elements, 1);
}

TEST(XmlReader, ReadsDeclaredEncodings) {
  const auto declared = [](const std::string& encoding, const std::string& text) {
    return elements_of("<?xml version='1.0' encoding='" + encoding + "'?><a>" + text + "</a>");
  };
  for (const char* name : {"UTF-8", "utf8"}) EXPECT_EQ(declared(name, "\xc3\xa9"), "a=\xc3\xa9;") << name;
  for (const char* name : {"ISO-8859-1", "iso-8859-1", "latin1", "Latin-1"})
    EXPECT_EQ(declared(name, "\xe9\x85"), "a=\xc3\xa9\xc2\x85;") << name;
  for (const char* name : {"windows-1252", "CP1252"})
    EXPECT_EQ(declared(name, "\x80\xe9"), "a=\xe2\x82\xac\xc3\xa9;") << name;
  EXPECT_EQ(declared("iso-8859-15", "\xa4"), "a=\xe2\x82\xac;");
  EXPECT_EQ(declared("windows-1251", "\xca\xee\xf2"), "a=\xd0\x9a\xd0\xbe\xd1\x82;");
  EXPECT_EQ(declared("ascii", "x"), "a=x;");
  for (const bool is_big : {true, false}) {
    std::string document = is_big ? "\xfe\xff" : "\xff\xfe";
    for (const char16_t c : std::u16string(u"<?xml version='1.0' encoding='UTF-16'?><a>\u00e9</a>"))
      for (const int shift : {is_big ? 8 : 0, is_big ? 0 : 8}) document += static_cast<char>(c >> shift & 0xff);
    EXPECT_EQ(elements_of(document), "a=\xc3\xa9;") << is_big;
  }
}

TEST(XmlReader, ReportsWhatIsWrongAndWhere) {
  const std::string undeclared = "; the XML is not UTF-8, so its declaration must name its encoding";
  const std::string invalid = "; the byte is not valid in the declared encoding '";
  const std::vector<std::pair<std::string, std::string>> all{
      {"", "invalid XML: no element found, at byte 0 (line 1)"},
      {"  ", "no element found, at byte 2"},
      {"<a>\n<b>", "no element found, at byte 7 (line 2)"},
      {"<a", "unclosed token, at byte 0"},
      {"<a></b>", "mismatched tag, at byte 5"},
      {"</a>", "not well-formed (invalid token), at byte 1"},
      {"<a/><b/>", "junk after document element, at byte 4"},
      {"<a/>x", "junk after document element, at byte 4"},
      {"<a b=\"></a>", "not well-formed (invalid token), at byte 7"},
      {"<>", "not well-formed (invalid token)"},
      {"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "an entity declaration, which is not supported, at byte 24"},
      {"<!DOCTYPE a [<!ENTITY e SYSTEM '/etc/passwd'>]><a>&e;</a>", "an entity declaration, which is not supported"},
      {"<!DOCTYPE a [<!ENTITY % e SYSTEM 'e'>%e;]><a/>", "an entity declaration, which is not supported"},
      {"<!DOCTYPE a SYSTEM 'a.dtd'><a>&e;</a>", "the entity 'e' is not defined in the document, at byte 30"},
      {"<a>&e;</a>", "undefined entity, at byte 3"},
      {"<a>&#xd800;</a>", "reference to invalid character number"},
      {"<a><!-- ", "unclosed token"},
      {"<a><![CDATA[ ", "unclosed CDATA section"},
      {"<a>\xe9</a>", "not well-formed (invalid token), at byte 3 (line 1)" + undeclared},
      {"<?xml version='1.0' encoding='UTF-8'?><a>\xff</a>", "at byte 41 (line 1)" + invalid + "UTF-8'"},
      {"<?xml version='1.0' encoding='windows-1252'?><a>\x81</a>", "at byte 48 (line 1)" + invalid + "windows-1252'"},
      {"<?xml version='1.0' encoding='gb2312'?><a/>",
       "the encoding 'gb2312' of the XML is not supported; save it as UTF-8"},
      {"<?xml version='1.0' encoding='windows-125x'?><a/>", "the encoding 'windows-125x' of the XML is not supported"},
      {"<?xml version='1.0' encoding='utf-16'?><a/>", "encoding specified in XML declaration is incorrect"}};
  for (const auto& [document, what] : all) {
    const std::string error = elements_of(document);
    EXPECT_NE(error.find(what), std::string::npos) << document << "\n" << error;
  }
  std::string deep;
  for (std::size_t i = 0; i <= kMostXmlDepth; ++i) deep += "<a>";
  EXPECT_NE(elements_of(deep).find("more than 32 nested elements, at byte 96"), std::string::npos) << elements_of(deep);
}

TEST(XmlReader, RefusesEveryTruncation) {
  const std::string document = "<?xml version='1.0' encoding='latin1'?><a><b>x&amp;y</b><!-- c --><c d='e'/></a>";
  for (std::size_t bytes = 0; bytes < document.size(); ++bytes)
    EXPECT_FALSE(read_xml(document.substr(0, bytes), [](const XmlElement&) { return true; })) << bytes;
}

}  // namespace
}  // namespace feedline::text
