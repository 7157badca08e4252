// SPDX-License-Identifier: Apache-2.0
#include "storage/http/client.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <new>

#include "storage/http/curl_library.h"
#include "storage/http/kept_buffers.h"
#include "storage/http/url.h"

namespace feedline::storage {
namespace {

constexpr long kMostRedirects = 5;
constexpr long kBufferBytes = kCurlBufferBytes;  // a write to memory for each; curl's own 16 KB are more calls
constexpr long kKeptConnections = 256;
constexpr std::size_t kKeptHandles = 64;
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);    // for stalls: their times are much longer
constexpr auto kLongestUntold = std::chrono::microseconds(500);  // while other sockets are looked at
constexpr int kLongestWaitMs = 60'000;
// Bit masks, which later versions have in words; these are understood by all.
constexpr auto kProtocols = static_cast<CURLoption>(CURLOPTTYPE_LONG + 181);
constexpr auto kRedirectProtocols = static_cast<CURLoption>(CURLOPTTYPE_LONG + 182);

// What another try would not change.
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

// What a child after fork() may not have: its parent's connections.
int keep_to_this_program(void* /*data*/, curl_socket_t socket, curlsocktype /*purpose*/) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  return 0;
}

// Where the environment says that certificates are, besides the system's own; nullptr: it does not.
struct Certificates {
  const char* file = nullptr;
  const char* folder = nullptr;
  std::string text() const { return std::string(file ? file : "") + '\n' + (folder ? folder : ""); }
};

Certificates certificates() {
  const char* const bundle = std::getenv("CURL_CA_BUNDLE");
  return {bundle ? bundle : std::getenv("SSL_CERT_FILE"), std::getenv("SSL_CERT_DIR")};
}

// The process's client. Never destroyed: threads may wait for it when the process ends.
struct Here {
  std::mutex mutex;
  Client* client = nullptr;
};

Here& process() {
  static Here* const here = [] {
    static Here* const made = new Here;
    // another thread of the parent may hold the mutex, and the client's thread is not in the child
    ::pthread_atfork(nullptr, nullptr, [] { new (made) Here; });
    return made;
  }();
  return *here;
}

}  // namespace

// A request as curl has it.
struct Client::Attempt {
  Job* job = nullptr;
  CURL* handle = nullptr;
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> words{};
  Clock::time_point begun;
  bool is_refused = false;  // while another one was under way
  bool is_plain = true;     // a GET: its handle has no options that another one would not set anew

  bool is_under_way() const { return handle != nullptr; }
};

struct Client::Job {
  Job(Client& of, Transfer& what, Waiting& who) : client(of), transfer(what), waiting(who) {
    for (Attempt& attempt : attempts) attempt.job = this;
  }
  Client& client;
  Transfer& transfer;
  Waiting& waiting;
  Clock::time_point due;    // not before
  bool is_blocked = false;  // it was due, and there was no room
  bool is_held_back = false;
  std::size_t parts_told = 0;
  std::uint64_t received_before = 0;  // this request
  std::string host;
  std::array<Attempt, 2> attempts;  // the request, and a second one where it is late
  Attempt* answering = nullptr;     // the one whose answer the transfer gets
  std::optional<Call> call;         // of a transfer that may be hedged
  std::optional<Clock::time_point> hedge_at;
  // of the time in which bytes must come
  Clock::time_point window_began;
  std::uint64_t window_bytes = 0;  // received before it

  Attempt& other(const Attempt& attempt) { return &attempt == &attempts[0] ? attempts[1] : attempts[0]; }
  // Whoever is alone decides, and so does the first that has what was asked for.
  bool may_answer(const Attempt& attempt, int status) {
    const Attempt& second = other(attempt);
    return !second.is_under_way() || second.is_refused || status / 100 == 2;
  }
};

Result<Client*> Client::here() {
  Here& here = process();
  const std::lock_guard lock(here.mutex);
  if (here.client == nullptr) {
    FEEDLINE_TRY(auto made, make(http_limits()));
    here.client = made.release();
    // before the libraries that it uses clean up after themselves
    std::atexit([] {
      if (Client* const client = process().client) client->stop();
    });
  }
  return here.client;
}

Client* Client::made() {
  Here& here = process();
  const std::lock_guard lock(here.mutex);
  return here.client;
}

Result<std::unique_ptr<Client>> Client::make(const HttpLimits& limits) {
  const auto& curl = curl_library();
  if (!curl) return std::unexpected(curl.error());
  std::unique_ptr<Client> client(new Client(*curl, limits));
  client->multi_ = curl->multi_init();
  if (client->multi_ == nullptr) return storage_error("libcurl does not start", ENOMEM);
  curl->multi_setopt(client->multi_, CURLMOPT_MAXCONNECTS, kKeptConnections);
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

Client::Client(const CurlLibrary& curl, const HttpLimits& limits) : curl_(curl), limits_(limits) {}

Client::~Client() {
  if (multi_ == nullptr) return;
  if (thread_) stop();
  for (void* handle : handles_) curl_.easy_cleanup(handle);
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
  waiting.told({&notice, 1});
}

void Client::give_up(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  ask(&transfer, nullptr);
}

// Whoever came since the thread last looked has woken it for those that follow; and while it works it looks by itself
// before it sleeps. Requires: mutex_ is held.
void Client::ask(Transfer* transfer, Waiting* waiting) {
  asked_.emplace_back(transfer, waiting);
  if (std::exchange(sleeping_, false)) watch_->wake();
}

Client::Counts Client::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::map<std::string, Client::Counts> Client::counts_of_hosts() const {
  const std::lock_guard lock(mutex_);
  return host_counts_;
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
    tell();  // and then looks for what is asked in answer to it
  }
  lose({ErrorCode::kCancelled, "the process ends", {}, 0});
}

// Nobody serves any more.
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

// Of a job whose host is known: is there room for it, and is it its turn?
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
    const std::lock_guard lock(mutex_);
    ++counts_.held_back;
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
  const auto parts = parts_of_url(call->url);
  job.host = parts ? std::string(parts->authority) : std::string();
  if (!may_begin(job)) return waiting_.push_back(&job);
  job.answering = nullptr;
  job.hedge_at.reset();
  if (!set_up(job.attempts[0], *call)) {
    job.transfer.fail(storage_error("libcurl takes no further request", ENOMEM).error());
    return conclude(job, Transfer::Next::kDone);
  }
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
  const std::lock_guard lock(mutex_);
  ++counts_.requests;
  ++host_counts_[job.host].requests;
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
    const std::lock_guard lock(mutex_);
    ++counts_.requests;
    ++host_counts_[job->host].requests;
    ++counts_.hedges;
  }
}

// What all requests have in common: a handle keeps it. curl copies what is text.
void Client::set_lasting(void* handle) const {
  const auto set = [&](CURLoption option, auto value) { curl_.easy_setopt(handle, option, value); };
  set(CURLOPT_MAXREDIRS, kMostRedirects);
  set(kProtocols, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_USERAGENT, "feedline");
  set(CURLOPT_SOCKOPTFUNCTION, keep_to_this_program);
  const Certificates from = certificates();
  if (from.file != nullptr) set(CURLOPT_CAINFO, from.file);
  if (from.folder != nullptr) set(CURLOPT_CAPATH, from.folder);
  set(CURLOPT_HEADERFUNCTION, &Client::on_header);
  set(CURLOPT_WRITEFUNCTION, &Client::on_body);
}

// One that has set_lasting(), and what the read before it had besides.
void* Client::take_handle() {
  const Certificates from = certificates();
  if (std::string now = from.text(); now != certificates_) {
    for (void* handle : std::exchange(handles_, {})) curl_.easy_cleanup(handle);
    certificates_ = std::move(now);
  }
  if (!handles_.empty()) {
    void* const handle = handles_.back();
    handles_.pop_back();
    return handle;
  }
  void* const handle = curl_.easy_init();
  if (handle != nullptr) set_lasting(handle);
  return handle;
}

bool Client::set_up(Attempt& attempt, const Call& call) {
  Job& job = *attempt.job;
  attempt.handle = take_handle();
  if (attempt.handle == nullptr) return false;
  attempt.begun = Clock::now();
  attempt.is_refused = false;
  attempt.is_plain = call.method == "GET" && !call.body;
  const auto add = [&](const char* header) {
    if (auto* const longer = curl_.slist_append(attempt.headers, header)) attempt.headers = longer;
  };
  for (const std::string& header : call.headers) add(header.c_str());
  // without curl's own: a type that no object has, and a question that many servers leave unanswered for a second
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
    // which is not copied; nullptr would mean that it comes by a call
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

// Who is waited for no longer was at least that late.
void Client::count_answer(const Job& job) {
  if (job.transfer.hedging() == nullptr) return;
  const auto now = Clock::now();
  for (const Attempt& attempt : job.attempts)
    if (attempt.is_under_way()) hedges_[job.host].answered(std::chrono::duration<double>(now - attempt.begun).count());
  if (job.answering == &job.attempts[1]) ++job.transfer.hedging()->won;
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
      close(attempt);  // the other one decides
      continue;
    }
    std::string trouble;
    // an answer that we broke off is no trouble
    if (code != CURLE_OK && code != CURLE_WRITE_ERROR)
      trouble = attempt.words[0] != '\0' ? attempt.words.data() : curl_.easy_strerror(code);
    if (trouble.empty() && job.transfer.is_data() && !job.transfer.sends()) measure(job);
    end(job, trouble, !is_final(code));
  }
  for (Job* const job : under_way_)  // who lost goes at once
    if (job->answering != nullptr && job->other(*job->answering).is_under_way()) close(job->other(*job->answering));
}

void Client::measure(const Job& job) {
  double sent = 0, first = 0, last = 0;  // seconds since the request was begun
  CURL* const handle = job.answering->handle;
  curl_.easy_getinfo(handle, CURLINFO_PRETRANSFER_TIME, &sent);
  curl_.easy_getinfo(handle, CURLINFO_STARTTRANSFER_TIME, &first);
  curl_.easy_getinfo(handle, CURLINFO_TOTAL_TIME, &last);
  const std::uint64_t bytes = job.transfer.bytes_received() - job.received_before;
  const std::lock_guard lock(mutex_);
  speeds_[job.host].add(std::max(first - sent, 0.0), bytes, std::max(last - first, 0.0));
}

LinkSpeed Client::speed(const std::string& host) const {
  const std::lock_guard lock(mutex_);
  const auto found = speeds_.find(host);
  return found == speeds_.end() ? LinkSpeed{} : found->second.speed();
}

// Of the body of the request under way.
std::uint64_t Client::sent_bytes(const Job& job) const {
  curl_off_t sent = 0;
  if (job.transfer.bytes_to_send() > 0) curl_.easy_getinfo(job.attempts[0].handle, CURLINFO_SIZE_UPLOAD_T, &sent);
  return static_cast<std::uint64_t>(sent);
}

// In every window of time, some bytes.
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
    // a server that was sent something may take its time over the answer, a blank now and then being enough
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

// The request ends, or has ended.
void Client::close(Job& job) {
  for (Attempt& attempt : job.attempts) close(attempt);
  if (std::erase(under_way_, &job) > 0) has_room_ = true;
}

void Client::close(Attempt& attempt) {
  if (!attempt.is_under_way()) return;
  long connections = 0;
  curl_.easy_getinfo(attempt.handle, CURLINFO_NUM_CONNECTS, &connections);
  curl_.multi_remove_handle(multi_, attempt.handle);
  if (attempt.is_plain && handles_.size() < kKeptHandles)
    handles_.push_back(attempt.handle);
  else
    curl_.easy_cleanup(attempt.handle);
  attempt.handle = nullptr;
  curl_.slist_free_all(std::exchange(attempt.headers, nullptr));
  has_room_ = true;
  const auto host = of_host_.find(attempt.job->host);
  if (--host->second == 0) of_host_.erase(host);
  const std::lock_guard lock(mutex_);
  counts_.connections += static_cast<std::uint64_t>(connections);
  host_counts_[attempt.job->host].connections += static_cast<std::uint64_t>(connections);
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
  {
    const std::lock_guard lock(mutex_);
    counts_.bytes += transfer.bytes_received();
    if (!job.host.empty()) host_counts_[job.host].bytes += transfer.bytes_received();
  }
  std::erase(waiting_, &job);
  jobs_.erase(&transfer);
  note(waiting, {&transfer, 0, next});
}

void Client::note(Waiting& waiting, const Notice& notice) {
  if (notices_.empty()) noted_ = Clock::now();
  notices_.emplace_back(&waiting, notice);
}

// Each in one call: after it, it may be gone.
void Client::tell() {
  while (!notices_.empty()) {
    Waiting* const waiting = notices_.front().first;
    const auto others =
        std::ranges::stable_partition(notices_, [&](const auto& notice) { return notice.first != waiting; });
    std::vector<Notice> its;
    for (const auto& [who, notice] : others) its.push_back(notice);
    notices_.erase(others.begin(), others.end());
    waiting->told(its);
  }
}

int Client::wait_ms() const {
  if (has_room_ && !waiting_.empty()) return 0;
  const auto now = Clock::now();
  auto until = now + std::chrono::milliseconds(kLongestWaitMs);
  for (const Job* const job : under_way_) until = std::min(until, job->window_began + job->transfer.limits().stall);
  if (until <= now) until = now + kBetweenLooks;  // when stalls are looked for
  for (const Job* const job : under_way_)
    if (job->hedge_at) until = std::min(until, *job->hedge_at);
  for (const Job* const job : waiting_)
    if (!job->is_blocked) until = std::min(until, job->due);
  if (until <= now) return 0;
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count()) + 1;
}

namespace {

// A thread that waits for one transfer.
class Arrival final : public Waiting {
 public:
  void told(std::span<const Notice> notices) override {
    const std::lock_guard lock(mutex_);
    how_ = notices.back().how;  // of its one transfer, which has one part
    finished_.notify_one();     // under the lock: whoever waits destroys this
  }
  Transfer::Next wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return how_.has_value(); });
    return *std::exchange(how_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<Transfer::Next> how_;
};

}  // namespace

Result<std::span<const std::byte>> carry_out(Client& client, Transfer& transfer) {
  FEEDLINE_CHECK_OK(transfer.site().prepare());
  Arrival arrival;
  while (true) {
    client.start(transfer, arrival);
    if (arrival.wait() == Transfer::Next::kDone) return transfer.result();
    FEEDLINE_CHECK_OK(transfer.site().renew(transfer.keys()));
  }
}

Result<std::span<const std::byte>> carry_out(Transfer& transfer) {
  FEEDLINE_TRY(Client* const client, Client::here());
  return carry_out(*client, transfer);
}

}  // namespace feedline::storage
