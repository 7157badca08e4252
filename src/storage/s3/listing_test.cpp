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

TEST(Listing, EntitiesAreReadOrLeft) {
  EXPECT_EQ(xml_text("<a>&lt;&#233;&#x1F600;&nbsp;&#1114112;&;&amp</a>", "a"),
            "<\xc3\xa9\xf0\x9f\x98\x80&nbsp;&#1114112;&;&amp");
  EXPECT_EQ(xml_text("<Error><Code>SlowDown</Code></Error>", "Code"), "SlowDown");
  EXPECT_EQ(xml_text("<Codes>x</Codes>", "Code"), "");
}

}  // namespace
}  // namespace feedline::storage
