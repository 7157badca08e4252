// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/listing.h"

#include <gtest/gtest.h>

namespace feedline::storage {
namespace {

const std::string kListing = R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>t%26/</Prefix>
<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b&#61;&#x3D;</NextContinuationToken>
<Contents><Key>t%26/a+b%2Bc%C3%A9.jpg</Key><Size>17</Size><ETag>&quot;e&quot;</ETag></Contents>
<Contents><Key>t%26/z</Key><Size>0</Size><Owner/></Contents>
<CommonPrefixes><Prefix>t%26/cat/</Prefix></CommonPrefixes></ListBucketResult>)";

TEST(Listing, HasObjectsPrefixesAndWhereItGoesOn) {
  const auto listing = parse_listing(kListing);
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 2u);
  EXPECT_EQ(listing->objects[0].key, "t&/a b+c\xc3\xa9.jpg");
  EXPECT_EQ(listing->objects[0].bytes, 17u);
  EXPECT_EQ(listing->objects[1].key, "t&/z");
  EXPECT_EQ(listing->prefixes, std::vector<std::string>{"t&/cat/"});
  EXPECT_EQ(listing->next, "a&b==");
}

TEST(Listing, CutOrWrongItIsNone) {
  for (std::size_t bytes = 0; bytes < kListing.size(); ++bytes)
    EXPECT_FALSE(parse_listing(kListing.substr(0, bytes))) << bytes;
  EXPECT_FALSE(parse_listing("<html>hello</html>"));
  EXPECT_FALSE(parse_listing("<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>"));
  EXPECT_FALSE(parse_listing("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"));
  EXPECT_TRUE(parse_listing("<ListBucketResult></ListBucketResult>")->objects.empty());
}

TEST(Listing, KeysAreDecodedWhereverTheEncodingIsStated) {
  const auto listing = parse_listing(
      "<ListBucketResult><Contents><Key>a%20b&amp;c</Key><Size>1</Size></Contents><CommonPrefixes><Prefix>p%2Fq/"
      "</Prefix></CommonPrefixes><EncodingType>url</EncodingType></ListBucketResult>");
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(listing->objects[0].key + " " + listing->prefixes[0], "a b&c p/q/");
  const auto plain =
      parse_listing("<ListBucketResult><Contents><Key>a%20b</Key><Size>1</Size></Contents></ListBucketResult>");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->objects[0].key, "a%20b");
}

TEST(Listing, AnErrorNamesTheReason) {
  EXPECT_NE(parse_listing("<Error/>").error().what.find("the root element is 'Error', not 'ListBucketResult'"),
            std::string::npos);
  EXPECT_NE(parse_listing("<ListBucketResult><Name>b</Nam").error().what.find("at byte 25"), std::string::npos)
      << parse_listing("<ListBucketResult><Name>b</Nam").error().what;
}

TEST(Listing, TextIsThatOfTheFirstElement) {
  EXPECT_EQ(xml_text("<a>&lt;&#233;&#x1F600;</a>", "a"), "<\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(xml_text("<Error><Code>SlowDown</Code></Error>", "Code"), "SlowDown");
  EXPECT_EQ(xml_text("<?xml version=\"1.0\"?>\n\n<Error><Code>SlowDown</Code><Mess", "Code"), "SlowDown")
      << "the beginning of a document";
  EXPECT_EQ(xml_text("<Codes>x</Codes>", "Code"), "");
  EXPECT_EQ(xml_text("<html><br></html>", "Code"), "");
}

TEST(Listing, ACompletionHasAnEtagInAWholeResponse) {
  const std::string whole =
      "<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult xmlns=\"x\"><ETag>&quot;e-2&quot;</ETag>"
      "</CompleteMultipartUploadResult>";
  EXPECT_EQ(completed_etag(whole), "\"e-2\"");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_EQ(completed_etag(whole.substr(0, bytes)), "");
  EXPECT_EQ(completed_etag("<Error><ETag>e</ETag></Error>"), "");
}

}  // namespace
}  // namespace feedline::storage
