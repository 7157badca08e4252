// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/xml_encoding.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "format/tar/sample_name.h"
#include "text/utf8.h"

namespace feedline::format {
namespace {

// The value of `encoding` in <?xml ... ?>, in lower case; "utf-8" if there is none.
std::string declared_encoding(std::string_view xml) {
  constexpr std::string_view kName = "encoding";
  const std::string usual = "utf-8";
  if (xml.starts_with("\xef\xbb\xbf")) xml.remove_prefix(3);
  if (!xml.starts_with("<?xml")) return usual;
  const std::string_view declaration = xml.substr(0, xml.find("?>"));
  const std::size_t name = declaration.find(kName);
  if (name == declaration.npos) return usual;
  const std::size_t begin = declaration.find_first_of("\"'", name);
  if (begin == declaration.npos) return usual;
  const std::size_t end = declaration.find(declaration[begin], begin + 1);
  return end == declaration.npos ? usual : to_lower(declaration.substr(begin + 1, end - begin - 1));
}

// Characters of Windows-1252 from 0x80 to 0x9f, which are control codes in ISO-8859-1; 0 if not assigned.
constexpr std::array<std::uint16_t, 32> kWindows{0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                                 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017d, 0,
                                                 0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                                 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

Result<std::string> utf8_of_bytes(std::string_view text, bool is_windows) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::uint32_t code = static_cast<unsigned char>(text[at]);
    if (is_windows && code >= 0x80 && code < 0xa0) code = kWindows[code - 0x80];
    if (code == 0 && text[at] != '\0')
      return data_error(
          "the XML has a byte that is not valid in its encoding, Windows-1252: byte " + std::to_string(at), "format");
    if (code < 0x80) {
      plain += static_cast<char>(code);
    } else if (code < 0x800) {
      plain += static_cast<char>(0xc0 | code >> 6);
      plain += static_cast<char>(0x80 | (code & 0x3f));
    } else {
      plain += static_cast<char>(0xe0 | code >> 12);
      plain += static_cast<char>(0x80 | (code >> 6 & 0x3f));
      plain += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return plain;
}

}  // namespace

Result<std::string> utf8_of_xml(std::string_view xml) {
  const std::string encoding = declared_encoding(xml);
  if (encoding == "iso-8859-1" || encoding == "latin-1" || encoding == "latin1") return utf8_of_bytes(xml, false);
  if (encoding == "windows-1252" || encoding == "cp1252") return utf8_of_bytes(xml, true);
  if (encoding != "utf-8" && encoding != "utf8" && encoding != "us-ascii" && encoding != "ascii")
    return data_error("the encoding '" + encoding + "' of the XML is not supported; save it as UTF-8", "format");
  if (auto checked = text::check_utf8(std::as_bytes(std::span(xml))); !checked)
    return data_error("the XML is " + std::move(checked).error().what + "; its declaration must name its encoding",
                      "format");
  return std::string(xml);
}

}  // namespace feedline::format
