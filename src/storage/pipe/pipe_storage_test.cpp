// SPDX-License-Identifier: Apache-2.0
// The output of commands as objects: each command runs once, failures are detected, and secrets are hidden.
#include "storage/pipe/pipe_storage.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <thread>
#include <vector>

#include "storage/pipe/command_text.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

INSTANTIATE_TEST_SUITE_P(Pipe, ObjectContract,
                         testing::Values(StorageUnderTest{
                             "pipe", [] { return std::make_shared<PipeStorage>(); },
                             [](const TemporaryFolder& folder, const std::string& name, const std::string& content) {
                               return "pipe:cat " + folder.write(name, content);
                             }}),
                         name_of_storage);

class PipeStorageTest : public testing::Test {
 protected:
  Result<std::string> read(const std::string& text) {
    FEEDLINE_TRY(const auto reader, storage_.open(storage_.name_of(text), Access::kRead));
    FEEDLINE_TRY(const ObjectStat stat, reader->stat());
    std::vector<std::byte> room(stat.bytes);
    FEEDLINE_TRY(const std::size_t got, reader->read_at(0, room));
    return std::string(reinterpret_cast<const char*>(room.data()), got);
  }
  std::string error_of(const std::string& text) {
    const auto found = read(text);
    EXPECT_FALSE(found) << *found;
    if (found) return {};
    EXPECT_EQ(found.error().code, ErrorCode::kStorage);
    return found.error().message();
  }

  TemporaryFolder folder_;
  PipeStorage storage_{folder_.path("")};
};

TEST_F(PipeStorageTest, TheOutputOfAShellCommandIsTheObject) {
  EXPECT_EQ(read("pipe:printf 'a b\\n' | tr a-z A-Z").value_or("-"), "A B\n");
  EXPECT_EQ(read("pipe:cat; echo end").value_or("-"), "end\n") << "there is nothing to read from";
  EXPECT_EQ(storage_.stat("pipe:never run").error().system_errno, ENOENT);
  EXPECT_FALSE(*storage_.is_directory("pipe:ls"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path(""))) << "its files have no names";
}

TEST_F(PipeStorageTest, ACommandIsRunOnceWhoeverOpensIt) {
  const std::string text = "pipe:echo run >> " + folder_.path("runs") + "; echo made";
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_EQ(read(text).value_or("-"), "made\n"); });
  threads.clear();
  EXPECT_EQ(TemporaryFolder::read(folder_.path("runs")), "run\n");
  EXPECT_NE(storage_.note().find("1 command run by /bin/sh, with an output of 5 bytes"), std::string::npos)
      << storage_.note();
}

TEST_F(PipeStorageTest, HowItEndsIsPartOfTheError) {
  std::string said = error_of("pipe:echo data; for i in 1 2 3 4 5 6 7; do echo line $i >&2; done; exit 22");
  for (const char* part : {"ended with status 22", "line 3 | line 4 | line 5 | line 6 | line 7", "for i in"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_EQ(said.find("line 2"), std::string::npos) << said;
  EXPECT_NE(error_of("pipe:echo data; kill -9 $$").find("was ended by signal 9"), std::string::npos);
  EXPECT_NE(error_of("pipe:feedline-no-such-command").find("no such command"), std::string::npos);
  EXPECT_NE(error_of("pipe:true").find("wrote nothing"), std::string::npos);
  EXPECT_NE(error_of("pipe:echo data | false").find("ended with status 1"), std::string::npos);
}

TEST_F(PipeStorageTest, FilesThatCannotBeMadeAreNamed) {
  PipeStorage nowhere(folder_.path("missing"));
  const auto opened = nowhere.open(nowhere.name_of("pipe:echo a"), Access::kRead);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("TMPDIR"), std::string::npos) << opened.error().message();
}

TEST_F(PipeStorageTest, SecretsAreUsedAndNotShown) {
  const std::string text = "pipe:TOKEN=s3cret sh -c 'echo $TOKEN; echo bad s3cret >&2; test $TOKEN = s3cret'";
  const std::string name = storage_.name_of(text);
  EXPECT_EQ(name.find("s3cret"), std::string::npos) << name;
  EXPECT_EQ(read(text).value_or("-"), "s3cret\n");
  const std::string said = error_of("pipe:TOKEN=s3cret sh -c 'echo no $TOKEN >&2; exit 1'");
  EXPECT_EQ(said.find("s3cret"), std::string::npos) << said;
  EXPECT_NE(said.find("no <hidden>"), std::string::npos) << said;
  EXPECT_EQ(read("pipe:SECRET=0 TOKEN=00 echo '<hidden-0>' 000 a0b1").value_or("-"), "<hidden-0> 000 a0b1\n");
}

TEST(CommandText, WhatIsSecretOfACommandIsFound) {
  using Secrets = std::vector<std::string>;
  EXPECT_EQ(secrets_in("curl -s https://host/000.tar"), Secrets{});
  EXPECT_EQ(secrets_in("curl https://me:pass@host/0.tar"), Secrets{"pass"});
  EXPECT_EQ(secrets_in("curl 'https://h/0.tar?X-Amz-Date=1&X-Amz-Signature=abc&x=1'"), Secrets{"abc"});
  EXPECT_EQ(secrets_in("AWS_SECRET_ACCESS_KEY=k/1+2= AWS_REGION=eu aws s3 cp s3://b/k -"), Secrets{"k/1+2="});
  EXPECT_EQ(secrets_in("curl -H 'Authorization: Bearer t0k en' -H 'Accept: a' -u me:pw x"),
            (Secrets{"t0k en", "me:pw"}));
  EXPECT_EQ(secrets_in("get --password \"p w\" --api-key=q --retry 3"), (Secrets{"p w", "q"}));
  EXPECT_EQ(secrets_in("curl --header=Cookie:sid=7 --user=a:b y"), (Secrets{"sid=7", "a:b"}));
}

}  // namespace
}  // namespace feedline::storage
