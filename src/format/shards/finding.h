// SPDX-License-Identifier: Apache-2.0
#pragma once

// Findings from scanning a source. `inspect` reports all findings, and open() fails with the first finding of severity
// kError, so that both reject the same data.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/inspection.h"

namespace feedline::format {

enum class Severity : std::uint8_t {
  kNote,
  kWarning,  // a reader drops or merges samples
  kError,    // reading fails
};

struct Finding {
  std::string_view code;  // a stable code; a string literal
  Severity severity = Severity::kError;
  std::string shard;
  std::string key;
  std::optional<std::uint64_t> offset;  // offset in the shard
  std::string text;                     // one sentence: the problem and its remedy
};

// Returns the finding that a column of `source` was not opened.
Finding to_finding(const UnopenedColumn& column, const std::string& source);
// Returns a kData error with the finding's location.
Error to_error(const Finding& finding);

// Stores the first findings of each code and counts the rest, so that a shard with a million invalid members does not
// exhaust memory.
class Findings {
 public:
  void add(Finding finding);
  void add(Findings findings);
  const Finding* first_error() const;
  const std::vector<Finding>& examples() const { return examples_; }
  std::uint64_t count(std::string_view code) const;
  // Returns errors, then warnings, then notes, each in the order of detection. At the end, one line for each code gives
  // the number of findings that are not shown.
  std::vector<InspectionFinding> to_inspection() const;

 private:
  static constexpr std::uint64_t kMostExamples = 20;

  std::vector<Finding> examples_;
  std::map<std::string_view, std::uint64_t> counts_;
};

}  // namespace feedline::format
