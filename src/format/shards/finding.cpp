// SPDX-License-Identifier: Apache-2.0
#include "format/shards/finding.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace feedline::format {
namespace {

std::string name_of(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "";
}

}  // namespace

Finding to_finding(const UnopenedColumn& column, const std::string& source) {
  std::string text = "the column '" + column.name + "'";
  if (!column.holds.empty()) text += " (" + column.holds + ")";
  text += " is not read: " + column.reason;
  if (!column.spec.empty()) text += "; to read it too, list '" + column.spec + "' in fields= with the other fields";
  return {"unread_column", Severity::kNote, source, "", {}, std::move(text)};
}

Error to_error(const Finding& finding) {
  Error error = data_error(finding.text, "format").error();
  error.where.shard = finding.shard;
  error.where.key = finding.key;
  error.where.offset = finding.offset;
  return error;
}

void Findings::add(Finding finding) {
  if (counts_[finding.code]++ < kMostExamples) examples_.push_back(std::move(finding));
}

void Findings::add(Findings findings) {
  std::map<std::string_view, std::uint64_t> hidden = std::move(findings.counts_);
  for (Finding& finding : findings.examples_) {
    --hidden[finding.code];
    add(std::move(finding));
  }
  for (const auto& [code, count] : hidden) counts_[code] += count;
}

const Finding* Findings::first_error() const {
  const auto found = std::ranges::find(examples_, Severity::kError, &Finding::severity);
  return found == examples_.end() ? nullptr : &*found;
}

std::uint64_t Findings::count(std::string_view code) const {
  const auto found = counts_.find(code);
  return found == counts_.end() ? 0 : found->second;
}

std::vector<InspectionFinding> Findings::to_inspection() const {
  std::vector<InspectionFinding> list;
  std::map<std::string_view, std::uint64_t> shown;
  std::map<std::string_view, Severity> severities;
  std::vector<Finding> sorted = examples_;
  std::ranges::stable_sort(sorted, std::greater{}, &Finding::severity);
  for (const Finding& finding : sorted) {
    ++shown[finding.code];
    severities[finding.code] = finding.severity;
    const std::string location = finding.offset ? " (byte " + std::to_string(*finding.offset) + ")" : "";
    list.push_back(
        {std::string(finding.code), name_of(finding.severity), finding.shard, finding.key, finding.text + location});
  }
  for (const auto& [code, count] : counts_)
    if (const std::uint64_t more = count - shown[code])
      list.push_back({std::string(code), name_of(severities[code]), "", "", std::to_string(more) + " more like these"});
  return list;
}

}  // namespace feedline::format
