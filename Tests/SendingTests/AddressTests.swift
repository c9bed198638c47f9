import Platform
import SupportBundle
import Testing

struct AddressTests {
  static let good: [(String, String)] = [
    ("https://support.example.com/inbox/uploads", "https://support.example.com"),
    ("HTTPS://Support.Example.com:443/x", "https://support.example.com"),
    ("https://support.example.com:8443/x?sig=1", "https://support.example.com:8443"),
    ("http://localhost:8080/x", "http://localhost:8080"), ("http://127.0.0.1/x", "http://127.0.0.1"),
    ("http://127.9.8.7:80/x", "http://127.9.8.7"), ("http://[::1]:8080/x", "http://[::1]:8080"),
  ]

  @Test(arguments: good)
  func addressesAreTaken(text: String, origin: String) throws {
    #expect(try ReceiverAddress(text).origin == origin)
  }

  static let bad = [
    "", "support.example.com", "ftp://support.example.com/", "http://support.example.com/x",
    "http://127.0.0.1.evil.com/",
    "http://localhost.evil.com/", "http://128.0.0.1/", "http://127.0.0.256/", "http://0x7f.0.0.1/", "http://127.1/",
    "https://user@support.example.com/", "https://user:secret@support.example.com/", "https:///x", "https://",
    "file:///etc",
    "https://support.example.com/#part", "https://support.example.com/a b", "https://sup port.example.com/", "/inbox",
    "https://support.example.com\\@evil.com/", "https://süpport.example.com/",
    "https://support.example.com/\r\nHost: x",
    "https://support.example.com:99999/", "http://[::2]/", "https://" + String(repeating: "a", count: 5000) + "/",
  ]

  @Test(arguments: bad)
  func othersAreRefused(text: String) {
    let error = #expect(throws: SupportBundleError.self) { try ReceiverAddress(text) }
    #expect(error?.code == "send-request")
    #expect(error?.description.contains("secret") == false)
  }

  @Test func aLocationLeadsToTheSameReceiverOrNowhere() throws {
    let endpoint = try ReceiverAddress("https://support.example.com/inbox/uploads")
    for (location, expected) in [
      ("/inbox/uploads/1", "https://support.example.com/inbox/uploads/1"),
      ("uploads/1", "https://support.example.com/inbox/uploads/1"),
      ("https://support.example.com/elsewhere/2", "https://support.example.com/elsewhere/2"),
      ("https://SUPPORT.example.com:443/3", "https://SUPPORT.example.com:443/3"),
    ] { #expect(endpoint.resolving(location)?.text == expected) }
    for location in [
      "", "//evil.com/x", "https://evil.com/x", "http://support.example.com/x", "https://support.example.com:8443/x",
      "https://support.example.com.evil.com/x", "https://support.example.com@evil.com/x", "javascript:alert(1)",
      "\\\\evil.com",
      "https://me@support.example.com/x", "/x#y", "/x y", "https:/\\evil.com",
    ] { #expect(endpoint.resolving(location) == nil, "\(location)") }
    #expect(try ReceiverAddress("https://a.example/x/n%C3%A4me%2F1?s=2").lastComponent == "näme/1")
    #expect(try ReceiverAddress("https://a.example/x?s=2").withoutQuery == "https://a.example/x")
  }

  @Test func tokensAreNeverShown() throws {
    let token = try AccessToken(" s3cret-Token_1==\n")
    #expect(!"\(token) \(String(reflecting: token))".contains("s3cret"))
    for text in ["", " ", "two words", "line\r\nHost: evil", "ümlaut", String(repeating: "a", count: 5000)] {
      #expect(throws: SupportBundleError.self) { try AccessToken(text) }
    }
  }
}
