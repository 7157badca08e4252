// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: an RSA key that was generated for the tests and grants access to nothing.

#include <string_view>

namespace feedline::storage {

inline constexpr std::string_view kTestRsaKey =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDJZNffN6rrOsbA\n"
    "8czz4NOfIpKQv91avrxCBuZ48so8iU30cCsOQYx1vVQoO/uz7+cK0CSPb2WKp/oj\n"
    "d4ZbrbkabTN9GB/cFG6fcOepfIRqFjijPD/Zovc018C2YSFXGlLHpCuON9XtO/v4\n"
    "6VPmteT9pktvkMU//yVVb33e17bTKi3ej4iNEJaUcx7g6o47jmDhcpaH6QG+1F4O\n"
    "VHeKHpxr5wMoCNNnrM7SUXtIK2JPzIW3jQtDP7tysu0bYTkEn3QTS9ctM5W41v9h\n"
    "H4MY94AS//xG0FG/mwJDgh2cBqVxbc/tI74+16AekMS6+yPH0QhwEGocGlXs+C8m\n"
    "+qfNjG0LAgMBAAECggEAG7VjsWL5LExrFxXNnd+YziQVZ+lLR8Eb/rZF/xhhycrB\n"
    "rngWUcD5Vc5a5f7mu77YmhdsHaNKebVwcsZu9m3O8hCvN66vh3n02bv7gPP69euh\n"
    "Fu24V+Brma92OhbgCES8ue9fohK9kgUhlFa/Q+v9GbGdCbhbOIReuxlQB0PE9DAd\n"
    "SilF+iaqHxxyfB+NoZFvcV/0W1kthij0yzFqe/d4G7sxGYnCeeWxDgOTDdWXriwa\n"
    "x+AfMb52WJMstSilZr2ecmz5ylqdD/hB94nL4TGdrwTW6+uaCWmdLMkZNppKlUOO\n"
    "Bo8pYhqDLWSBgLrg2FW+PBMmIIthkHLmRHkFZphNtQKBgQD0yk+Nvr4tvZcDnQr9\n"
    "bkhk532FxNAyl1dnGrAAHYZwBPB+/O2LuDlbZ1CcnkZ7eOl/VlxLkvPYtBxnlTDo\n"
    "DVnD4mYYrBFsUhMa1jx5HCtZjLPdJVX/ChgqUlokdREoPp5K0VbM+4VGePE2TQQv\n"
    "b6P96N34M7qlNL5GhkfLnXB+lQKBgQDSnctywIZA+/XpWK7eBKOrsOn8fJ+22xoP\n"
    "W/vwnuaFnvwYYjMAJh89H4fjOk/gCXGWsYMl33bVpA0K7PXH9Q1pSX75vjmRalyg\n"
    "MjfMiOKcjF4iA7uFMXMA3vkjFJqTH96jvCFvy7AxzDTl1ca4Xcy2SWWqqn1pt7ww\n"
    "wAZqKQd1HwKBgEKpQWbRVcrxAUnrn02Klc5ct/MQuL2+NwAN5XXylGS3A6MhT7Mn\n"
    "1P7OMMal133SXIvfwbyW5S7TRZTzrODUmehdI/5+BTShWTCKvOciQ6/cQDLt8vBE\n"
    "GHaV/JRHCQgTnVm0jlW9/PpG/zERYh1k4pzHqILp218X8OUVtkF9u1/NAoGBAJTH\n"
    "QMtL8sp+8gSnT8en8VI8Q93Gzy/lcHA/IyajqOXlG+HBpJNLWq/b0SsTqw7wvNud\n"
    "g65CP/jEzS3Vm/1nPtUMRPT4ikQNpWbIcqA6ZhH+GhTfHB0HhFyuJcHBMTwSvDxf\n"
    "jiMh+NIEla1xqNHd+Nkf2gCINNV0JC0vyJg/aXQzAoGAQTQR6sb/8n8BnrJOuC+t\n"
    "G4Xg1llefj7R50DVXXJ7E1wuhJ0epq983jDANYnUV0FYe7NCGbtbrpiim+iVb2HL\n"
    "fae3txuJSV/3BsNMTe7ZR5+L0ai3Fx8OcetqHQBSTcg9z2R7mw2fjxmk5izjYRGe\n"
    "gRC9SMYoSiKq2/6IiS6X7z8=\n"
    "-----END PRIVATE KEY-----\n";

}  // namespace feedline::storage
