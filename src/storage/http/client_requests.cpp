// SPDX-License-Identifier: Apache-2.0
// Sets a request's curl options and handles curl's callbacks for the response.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "storage/http/client.h"
#include "storage/http/client_job.h"
#include "storage/http/response_head.h"

namespace feedline::storage {
namespace {

constexpr auto kLongestUntold = std::chrono::microseconds(500);  // until other sockets are polled
// The option CURLOPT_REDIR_PROTOCOLS, a bit mask that all versions of libcurl accept; later versions also have an
// option that accepts text.
constexpr auto kRedirectProtocols = static_cast<CURLoption>(CURLOPTTYPE_LONG + 182);

}  // namespace

bool Client::set_up(Attempt& attempt, const Call& call) {
  Job& job = *attempt.job;
  attempt.handle = handles_.take();
  if (attempt.handle == nullptr) return false;
  attempt.begun = Clock::now();
  attempt.is_refused = false;
  attempt.is_plain = call.method == "GET" && !call.body;
  const auto add = [&](const char* header) {
    if (auto* const longer = curl_.slist_append(attempt.headers, header)) attempt.headers = longer;
  };
  for (const std::string& header : call.headers) add(header.c_str());
  // removes curl's defaults: a wrong content type, and "Expect", which many servers do not answer for a second
  const auto names_type = [](const std::string& header) { return header.starts_with("Content-Type:"); };
  if (call.body && std::ranges::none_of(call.headers, names_type)) add("Content-Type:");
  if (call.body) add("Expect:");
  const auto set = [&](CURLoption option, auto value) { curl_.easy_setopt(attempt.handle, option, value); };
  const bool is_https = call.url.starts_with("https:");
  set(CURLOPT_URL, call.url.c_str());
  set(CURLOPT_HTTPHEADER, attempt.headers);
  if (call.method == "HEAD") set(CURLOPT_NOBODY, 1L);
  if (call.method != "GET" && call.method != "HEAD") set(CURLOPT_CUSTOMREQUEST, call.method.c_str());
  if (call.body) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body->size()));
    // not copied; nullptr would mean that a callback provides it
    set(CURLOPT_POSTFIELDS, call.body->empty() ? "" : reinterpret_cast<const char*>(call.body->data()));
  }
  set(CURLOPT_FOLLOWLOCATION, call.follows ? 1L : 0L);
  set(kRedirectProtocols, static_cast<long>(is_https ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(job.transfer.limits().connect.count()));
  attempt.words[0] = '\0';
  set(CURLOPT_ERRORBUFFER, attempt.words.data());
  set(CURLOPT_PRIVATE, &attempt);
  set(CURLOPT_HEADERDATA, &attempt);
  set(CURLOPT_WRITEDATA, &attempt);
  if (curl_.multi_add_handle(multi_, attempt.handle) == CURLM_OK) return true;
  curl_.easy_cleanup(std::exchange(attempt.handle, nullptr));
  curl_.slist_free_all(std::exchange(attempt.headers, nullptr));
  return false;
}

std::size_t Client::on_header(char* data, std::size_t size, std::size_t count, void* attempt) {
  Attempt& it = *static_cast<Attempt*>(attempt);
  Job& job = *it.job;
  const std::string_view line(data, size * count);
  if (job.answering == nullptr && line.starts_with("HTTP/")) {
    ResponseHead head;
    head.add(line, 0);
    const bool is_on_its_way = head.status / 100 == 1 || (head.status / 100 == 3 && job.call && job.call->follows);
    if (job.may_answer(it, head.status)) {
      job.answering = &it;
      job.client.count_answer(job);
    } else if (!is_on_its_way) {
      it.is_refused = true;
    }
  }
  if (job.answering == &it) job.transfer.on_header(line, std::time(nullptr));
  const bool is_passed_over = it.is_refused || (job.answering != nullptr && job.answering != &it);
  if (!is_passed_over) return line.size();
  if (HedgeCounts* const hedging = job.transfer.hedging()) hedging->dropped_bytes += line.size();
  return 0;
}

std::size_t Client::on_body(char* data, std::size_t size, std::size_t count, void* attempt) {
  const std::span<const char> bytes(data, size * count);
  Attempt& it = *static_cast<Attempt*>(attempt);
  Job& job = *it.job;
  if (job.answering != &it) {
    if (HedgeCounts* const hedging = job.transfer.hedging()) hedging->dropped_bytes += bytes.size();
    return job.answering == nullptr ? bytes.size() : 0;
  }
  const bool goes_on = job.transfer.on_body(std::as_bytes(bytes));
  if (const std::size_t done = job.transfer.parts_done(); done > job.parts_told && job.transfer.has_more_parts()) {
    job.parts_told = done;
    job.client.note(job.waiting, {&job.transfer, done, {}});
  }
  // the sockets that are looked at together may have much to say
  if (!job.client.notices_.empty() && Clock::now() - job.client.noted_ > kLongestUntold) job.client.tell();
  return goes_on ? bytes.size() : 0;
}

// An abandoned request is counted with the time spent waiting for it, which is a lower bound on its latency.
void Client::count_answer(const Job& job) {
  if (job.transfer.hedging() == nullptr) return;
  const auto now = Clock::now();
  for (const Attempt& attempt : job.attempts)
    if (attempt.is_under_way()) hedges_[job.host].answered(std::chrono::duration<double>(now - attempt.begun).count());
  if (job.answering == &job.attempts[1]) ++job.transfer.hedging()->won;
}

void Client::measure(const Job& job) {
  double sent = 0, first = 0, last = 0;  // seconds since the request started
  CURL* const handle = job.answering->handle;
  curl_.easy_getinfo(handle, CURLINFO_PRETRANSFER_TIME, &sent);
  curl_.easy_getinfo(handle, CURLINFO_STARTTRANSFER_TIME, &first);
  curl_.easy_getinfo(handle, CURLINFO_TOTAL_TIME, &last);
  const std::uint64_t bytes = job.transfer.bytes_received() - job.received_before;
  tally_.answered(job.host, std::max(first - sent, 0.0), bytes, std::max(last - first, 0.0));
}

// Returns how many bytes of the request body were sent.
std::uint64_t Client::sent_bytes(const Job& job) const {
  curl_off_t sent = 0;
  if (job.transfer.bytes_to_send() > 0) curl_.easy_getinfo(job.attempts[0].handle, CURLINFO_SIZE_UPLOAD_T, &sent);
  return static_cast<std::uint64_t>(sent);
}

void Client::close(Attempt& attempt) {
  if (!attempt.is_under_way()) return;
  long connections = 0;
  curl_.easy_getinfo(attempt.handle, CURLINFO_NUM_CONNECTS, &connections);
  curl_.multi_remove_handle(multi_, attempt.handle);
  handles_.give_back(std::exchange(attempt.handle, nullptr), attempt.is_plain);
  curl_.slist_free_all(std::exchange(attempt.headers, nullptr));
  has_room_ = true;
  const auto host = of_host_.find(attempt.job->host);
  if (--host->second == 0) of_host_.erase(host);
  tally_.connected(attempt.job->host, static_cast<std::uint64_t>(connections));
}

}  // namespace feedline::storage
