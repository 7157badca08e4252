// SPDX-License-Identifier: Apache-2.0
#include "text/xml_reader.h"

#include <expat.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace feedline::text {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// Returns expat's name for common names of encodings that are not registered, or nullptr.
const char* registered_name(std::string_view encoding) {
  constexpr std::array<std::array<const char*, 2>, 4> kNames{
      {{"utf8", "UTF-8"}, {"ascii", "US-ASCII"}, {"latin1", "ISO-8859-1"}, {"latin-1", "ISO-8859-1"}}};
  const auto found = std::ranges::find(kNames, encoding, [](const auto& name) { return std::string_view(name[0]); });
  return found == kNames.end() ? nullptr : (*found)[1];
}

// Only stateless single-byte encodings are passed to iconv, because documents may be untrusted and some of iconv's
// stateful converters have had exploitable bugs.
bool is_code_page(std::string_view encoding) {
  constexpr std::array<std::string_view, 4> kFamilies{"iso-8859-", "windows-125", "cp125", "koi8-"};
  return std::ranges::any_of(kFamilies, [&](std::string_view family) {
    return encoding.starts_with(family) && encoding.find('/') == encoding.npos;
  });
}

// Sets the code point of each byte, or -1 for bytes without one. Returns false if the C library does not have the
// encoding.
bool read_code_page(const char* encoding, XML_Encoding& page) {
  const iconv_t converter = ::iconv_open("UTF-32LE", encoding);
  if (converter == reinterpret_cast<iconv_t>(-1)) return false;
  for (std::size_t byte = 0; byte < std::size(page.map); ++byte) {
    char in = static_cast<char>(byte);
    std::array<unsigned char, 4> out{};
    char* from = &in;
    auto* to = reinterpret_cast<char*>(out.data());
    std::size_t in_bytes = 1, out_bytes = out.size();
    const bool is_read = ::iconv(converter, &from, &in_bytes, &to, &out_bytes) == 0 && out_bytes == 0;
    page.map[byte] = is_read ? out[0] | out[1] << 8 | out[2] << 16 : -1;
  }
  ::iconv_close(converter);
  page.data = nullptr;
  page.convert = nullptr;
  page.release = nullptr;
  return true;
}

class Reading {
 public:
  Reading(std::string_view document, const std::function<bool(const XmlElement&)>& take)
      : document_(document), take_(take) {}

  Result<void> read() {
    if (document_.size() > std::numeric_limits<int>::max())
      return data_error("invalid XML: a document of more than 2 GiB", "format");
    // some servers send white space before the declaration, to keep the connection open
    skipped_ = std::min(document_.find_first_not_of(" \t\r\n"), document_.size());
    bool is_whole = parse(nullptr);
    if (!is_whole && renamed_ != nullptr) is_whole = parse(renamed_);
    if (is_whole || is_stopped_) return {};
    return data_error(error_, "format");
  }

 private:
  bool parse(const char* encoding) {
    const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(XML_ParserCreate(encoding),
                                                                              &XML_ParserFree);
    parser_ = parser.get();
    XML_SetUserData(parser_, this);
    XML_SetElementHandler(
        parser_, [](void* self, const char* name, const char**) { static_cast<Reading*>(self)->begin(name); },
        [](void* self, const char*) { static_cast<Reading*>(self)->end(); });
    XML_SetCharacterDataHandler(parser_, [](void* self, const char* text, int bytes) {
      static_cast<Reading*>(self)->texts_.back().append(text, static_cast<std::size_t>(bytes));
    });
    // Entities could expand to any size, so entity declarations are rejected. References to undefined entities are also
    // rejected, because expat would silently skip entities of external document types.
    XML_SetEntityDeclHandler(parser_, [](void* self, const char*, int, const char*, int, const char*, const char*,
                                         const char*, const char*) {
      static_cast<Reading*>(self)->fail("an entity declaration, which is not supported");
    });
    XML_SetSkippedEntityHandler(parser_, [](void* self, const char* name, int) {
      static_cast<Reading*>(self)->fail("the entity '" + std::string(name) + "' is not defined in the document");
    });
    XML_SetXmlDeclHandler(parser_, [](void* self, const char*, const char* declared, int) {
      if (declared != nullptr) static_cast<Reading*>(self)->declared_ = declared;
    });
    XML_SetUnknownEncodingHandler(
        parser_,
        [](void* self, const char* name, XML_Encoding* page) {
          const bool is_known = static_cast<Reading*>(self)->choose_encoding(name, *page);
          return static_cast<int>(is_known ? XML_STATUS_OK : XML_STATUS_ERROR);
        },
        this);
    const std::string_view text = document_.substr(skipped_);
    if (XML_Parse(parser_, text.data(), static_cast<int>(text.size()), XML_TRUE) == XML_STATUS_OK) return true;
    if (error_.empty()) describe_error();
    return false;
  }

  void begin(const char* name) {
    if (path_.size() == kMostXmlDepth) return fail("more than 32 nested elements");
    path_.emplace_back(name);
    texts_.emplace_back();
  }

  void end() {
    if (!error_.empty() || is_stopped_) return;  // expat reports the end of an empty element even after a stop
    if (!take_({path_, texts_.back(), offset()})) {
      is_stopped_ = true;
      XML_StopParser(parser_, XML_FALSE);
    }
    path_.pop_back();
    texts_.pop_back();
  }

  bool choose_encoding(std::string_view name, XML_Encoding& page) {
    const std::string encoding = lower(name);
    if (is_code_page(encoding) && read_code_page(encoding.c_str(), page)) return true;
    renamed_ = registered_name(encoding);
    return false;
  }

  void fail(const std::string& what) {
    if (error_.empty()) error_ = "invalid XML: " + what + location();
    XML_StopParser(parser_, XML_FALSE);
  }

  void describe_error() {
    const XML_Error code = XML_GetErrorCode(parser_);
    if (code == XML_ERROR_UNKNOWN_ENCODING && renamed_ != nullptr) return;
    if (code == XML_ERROR_UNKNOWN_ENCODING) {
      error_ = "the encoding '" + declared_ + "' of the XML is not supported; save it as UTF-8";
      return;
    }
    error_ = std::string("invalid XML: ") + XML_ErrorString(code) + location();
    const std::uint64_t at = offset();
    if (code == XML_ERROR_INVALID_TOKEN && at < document_.size() && static_cast<unsigned char>(document_[at]) >= 0x80)
      error_ += declared_.empty() ? "; the XML is not UTF-8, so its declaration must name its encoding"
                                  : "; the byte is not valid in the declared encoding '" + declared_ + "'";
  }

  std::uint64_t offset() const {
    return skipped_ + static_cast<std::uint64_t>(std::max<XML_Index>(XML_GetCurrentByteIndex(parser_), 0));
  }
  std::string location() const {
    return ", at byte " + std::to_string(offset()) + " (line " + std::to_string(XML_GetCurrentLineNumber(parser_)) +
           ")";
  }

  const std::string_view document_;
  const std::function<bool(const XmlElement&)>& take_;
  std::size_t skipped_ = 0;
  XML_Parser parser_ = nullptr;
  std::vector<std::string> path_, texts_;  // of the open elements
  const char* renamed_ = nullptr;          // expat's name of the declared encoding, with which to parse again
  std::string declared_, error_;
  bool is_stopped_ = false;
};

}  // namespace

Result<void> read_xml(std::string_view document, const std::function<bool(const XmlElement&)>& take) {
  return Reading(document, take).read();
}

}  // namespace feedline::text
