// SPDX-License-Identifier: Apache-2.0
#include "storage/http/client.h"

#include <algorithm>
#include <cerrno>

#include "storage/http/client_job.h"
#include "storage/http/curl_library.h"
#include "storage/http/url.h"

namespace feedline::storage {
namespace {

constexpr long kIdleConnections = 256;
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);  // for stalls: their times are much longer
constexpr int kLongestWaitMs = 60'000;

// Returns whether a retry would fail with the same error.
bool is_final(int code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_LOGIN_DENIED:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::unique_ptr<Client>> Client::make(const HttpLimits& limits) {
  const auto& curl = curl_library();
  if (!curl) return std::unexpected(curl.error());
  std::unique_ptr<Client> client(new Client(*curl, limits));
  client->multi_ = curl->multi_init();
  if (client->multi_ == nullptr) return storage_error("libcurl does not start", ENOMEM);
  curl->multi_setopt(client->multi_, CURLMOPT_MAXCONNECTS, kIdleConnections);
  FEEDLINE_TRY(client->watch_, SocketWatch::make(*curl, client->multi_));
  FEEDLINE_TRY(auto thread, base::Thread::start(
                                "feedline-http", [it = client.get()] { it->run(); },
                                [it = client.get()](const Error& error) { it->lose(error); }));
  client->thread_.emplace(std::move(thread));
  return client;
}

void Client::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  watch_->wake();
  thread_.reset();  // joins
}

Client::Client(const CurlLibrary& curl, const HttpLimits& limits)
    : curl_(curl), limits_(limits), handles_(curl, &Client::on_header, &Client::on_body) {}

Client::~Client() {
  if (multi_ == nullptr) return;
  if (thread_) stop();
  curl_.multi_cleanup(multi_);
}

void Client::start(Transfer& transfer, Waiting& waiting) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_) {
      ask(&transfer, &waiting);
      return;
    }
    transfer.fail(*lost_);
  }
  const Notice notice{&transfer, 0, Transfer::Next::kDone};
  waiting.notify({&notice, 1});
}

void Client::give_up(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  ask(&transfer, nullptr);
}

// The first caller since the thread's last check has woken the thread for all later callers: the thread checks again
// before it sleeps. Requires: the caller holds mutex_.
void Client::ask(Transfer* transfer, Waiting* waiting) {
  asked_.emplace_back(transfer, waiting);
  if (std::exchange(sleeping_, false)) watch_->wake();
}

void Client::run() {
  while (true) {
    take_asked();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
    }
    begin_waiting();
    begin_hedges();
    tell();
    int wait_ms = this->wait_ms();
    {
      const std::lock_guard lock(mutex_);
      sleeping_ = asked_.empty() && !stopping_;
      if (!sleeping_) wait_ms = 0;
    }
    watch_->wait(wait_ms);
    {
      const std::lock_guard lock(mutex_);
      sleeping_ = false;
    }
    end_finished();
    end_stalled();
    tell();  // and then checks for requests made in response
  }
  lose({ErrorCode::kCancelled, "the process ends", {}, 0});
}

// Shuts the client down after an error.
void Client::lose(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    lost_ = error;
  }
  take_asked();
  while (!jobs_.empty()) {
    Job& job = *jobs_.begin()->second;
    close(job);
    job.transfer.fail(error);
    conclude(job, Transfer::Next::kDone);
  }
  tell();
}

void Client::take_asked() {
  std::vector<std::pair<Transfer*, Waiting*>> asked;
  {
    const std::lock_guard lock(mutex_);
    std::swap(asked, asked_);
  }
  for (const auto& [transfer, waiting] : asked) {
    if (waiting == nullptr) {
      end_given_up(transfer);
      continue;
    }
    auto& job = jobs_[transfer] = std::make_unique<Job>(*this, *transfer, *waiting);
    waiting_.push_back(job.get());
  }
}

void Client::end_given_up(Transfer* transfer) {
  const auto found = jobs_.find(transfer);
  if (found == jobs_.end()) return;
  Job& job = *found->second;
  close(job);
  transfer->fail({ErrorCode::kCancelled, "the read was cancelled", {}, 0});
  conclude(job, Transfer::Next::kDone);
}

void Client::begin_waiting() {
  has_room_ = false;
  if (waiting_.empty()) return;
  const auto now = Clock::now();
  std::deque<Job*> left;
  for (Job* const job : std::exchange(waiting_, {})) {
    const bool is_due = job->due <= now;
    job->is_blocked = is_due && under_way_.size() >= limits_.at_once;
    if (is_due && !job->is_blocked)
      begin(*job);
    else
      left.push_back(job);
  }
  waiting_.insert(waiting_.end(), left.begin(), left.end());
}

// For a job whose host is known: returns whether there is room and the rate limit permits a request.
bool Client::may_begin(Job& job) {
  const auto under_way = of_host_.find(job.host);
  if (under_way != of_host_.end() && under_way->second >= limits_.at_once_per_host) {
    job.is_blocked = true;
    return false;
  }
  if (limits_.requests_per_s == 0) return true;
  const auto next = paces_.try_emplace(job.host, limits_.requests_per_s).first->second.next();
  if (next <= Clock::now()) return true;
  job.due = next;
  if (!std::exchange(job.is_held_back, true)) {
    tally_.held_back();
  }
  return false;
}

void Client::begin(Job& job) {
  if (!job.host.empty() && !may_begin(job)) return waiting_.push_back(&job);
  auto call = job.transfer.request();
  if (!call) {
    job.transfer.fail(std::move(call).error());
    return conclude(job, Transfer::Next::kDone);
  }
  if (call->later.count() > 0) {
    job.due = Clock::now() + call->later;
    return waiting_.push_back(&job);
  }
  const auto parts = parts_of_url(call->url);
  job.host = parts ? std::string(parts->authority) : std::string();
  if (!may_begin(job)) return waiting_.push_back(&job);
  job.answering = nullptr;
  job.hedge_at.reset();
  if (!set_up(job.attempts[0], *call)) {
    job.transfer.fail(storage_error("libcurl accepts no more requests", ENOMEM).error());
    return conclude(job, Transfer::Next::kDone);
  }
  job.ticket = std::move(call->ticket);
  job.transfer.begun();
  ++of_host_[job.host];
  if (limits_.requests_per_s > 0) paces_.at(job.host).made(Clock::now());
  under_way_.push_back(&job);
  job.window_began = Clock::now();
  if (job.transfer.hedging() != nullptr) {
    job.call = std::move(*call);
    HedgePolicy& policy = hedges_[job.host];
    policy.began();
    if (const auto late = policy.late_after_s())
      job.hedge_at =
          job.window_began + std::max(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*late)),
                                      Clock::duration(job.transfer.limits().least_late));
  }
  job.window_bytes = job.received_before = job.transfer.bytes_received();
  job.is_held_back = false;
  tally_.request(job.host);
}

bool Client::may_hedge(const Job& job) {
  const auto under_way = of_host_.find(job.host);
  if (under_way != of_host_.end() && under_way->second >= limits_.at_once_per_host) return false;
  if (limits_.requests_per_s > 0 && paces_.at(job.host).next() > Clock::now()) return false;
  return hedges_[job.host].may_spend();
}

void Client::begin_hedges() {
  const auto now = Clock::now();
  for (Job* const job : under_way_) {
    if (!job->hedge_at || *job->hedge_at > now) continue;
    job->hedge_at.reset();
    if (job->answering != nullptr || !may_hedge(*job) || !set_up(job->attempts[1], *job->call)) continue;
    ++of_host_[job->host];
    if (limits_.requests_per_s > 0) paces_.at(job->host).made(now);
    ++job->transfer.hedging()->made;
    tally_.hedge(job->host);
  }
}

void Client::end_finished() {
  int left = 0;
  while (const CURLMsg* const message = curl_.multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    char* found = nullptr;
    curl_.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
    Attempt& attempt = *reinterpret_cast<Attempt*>(found);
    Job& job = *attempt.job;
    const CURLcode code = message->data.result;
    if (job.answering != &attempt && job.other(attempt).is_under_way()) {
      close(attempt);  // the other request decides
      continue;
    }
    std::string trouble;
    // a response that we aborted is not an error
    if (code != CURLE_OK && code != CURLE_WRITE_ERROR)
      trouble = attempt.words[0] != '\0' ? attempt.words.data() : curl_.easy_strerror(code);
    if (trouble.empty() && job.transfer.is_data() && !job.transfer.sends()) measure(job);
    end(job, trouble, !is_final(code));
  }
  for (Job* const job : under_way_)  // the losing request is cancelled at once
    if (job->answering != nullptr && job->other(*job->answering).is_under_way()) close(job->other(*job->answering));
}

// Ends requests that received too few bytes in an interval.
void Client::end_stalled() {
  const auto now = Clock::now();
  if (now - looked_for_stalls_ < kBetweenLooks) return;
  looked_for_stalls_ = now;
  for (std::size_t i = under_way_.size(); i-- > 0;) {
    Job& job = *under_way_[i];
    const HttpLimits& limits = job.transfer.limits();
    if (now - job.window_began < limits.stall) continue;
    const std::uint64_t sent = sent_bytes(job), to_send = job.transfer.bytes_to_send();
    const std::uint64_t came = job.transfer.bytes_received() + sent - job.window_bytes;
    // a server may take long to respond to an upload, as long as it sends an occasional blank
    const bool flows = job.transfer.sends() ? 0 < sent && sent < to_send : job.transfer.has_begun();
    if (came >= (flows ? limits.least_bytes : 1)) {
      job.window_began = now;
      job.window_bytes += came;
      continue;
    }
    end(job, "stalled: " + std::to_string(came) + " bytes in " + std::to_string(limits.stall.count()) + " ms", true);
  }
}

void Client::end(Job& job, std::string_view trouble, bool is_worth_another_try) {
  close(job);
  conclude(job, job.transfer.on_end(trouble, is_worth_another_try));
}

// Called when a request ends or has ended.
void Client::close(Job& job) {
  for (Attempt& attempt : job.attempts) close(attempt);
  job.ticket.reset();
  if (std::erase(under_way_, &job) > 0) has_room_ = true;
}

void Client::conclude(Job& job, Transfer::Next next) {
  if (next == Transfer::Next::kAgain) {
    job.due = Clock::now() + job.transfer.pause();
    job.is_blocked = false;
    waiting_.push_back(&job);
    return;
  }
  Transfer& transfer = job.transfer;
  Waiting& waiting = job.waiting;
  tally_.received(job.host, transfer.bytes_received());
  std::erase(waiting_, &job);
  jobs_.erase(&transfer);
  note(waiting, {&transfer, 0, next});
}

void Client::note(Waiting& waiting, const Notice& notice) {
  if (notices_.empty()) noted_ = Clock::now();
  notices_.emplace_back(&waiting, notice);
}

// Makes one call for each waiter, because the waiter may be destroyed afterwards.
void Client::tell() {
  while (!notices_.empty()) {
    Waiting* const waiting = notices_.front().first;
    const auto others =
        std::ranges::stable_partition(notices_, [&](const auto& notice) { return notice.first != waiting; });
    std::vector<Notice> its;
    for (const auto& [who, notice] : others) its.push_back(notice);
    notices_.erase(others.begin(), others.end());
    waiting->notify(its);
  }
}

int Client::wait_ms() const {
  if (has_room_ && !waiting_.empty()) return 0;
  const auto now = Clock::now();
  auto until = now + std::chrono::milliseconds(kLongestWaitMs);
  for (const Job* const job : under_way_) until = std::min(until, job->window_began + job->transfer.limits().stall);
  if (until <= now) until = now + kBetweenLooks;  // time of the next check for stalls
  for (const Job* const job : under_way_)
    if (job->hedge_at) until = std::min(until, *job->hedge_at);
  for (const Job* const job : waiting_)
    if (!job->is_blocked) until = std::min(until, job->due);
  if (until <= now) return 0;
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count()) + 1;
}

}  // namespace feedline::storage
