internal import Platform
internal import SupportBundle

/// Reads bytes as what senders and receivers say: header fields, a receipt.
enum UploadReading {
  static func run(_ bytes: [UInt8]) throws(FuzzFailure) {
    let text = String(decoding: bytes, as: UTF8.self)
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).prefix(20) { try read(String(line)) }
    try read(text)
    if let receipt = DeliveryReceipt(bytes, receiver: "https://a.example", now: Timestamp(secondsSince1970: 0)) {
      try expect(receipt.bytes >= 0, "a receipt is about less than nothing")
      try expect(
        receipt.id.utf8.count <= 200 && receipt.id.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
          && !receipt.id.contains("<"), "a receipt has a name that cannot be shown")
      try expect(Timestamp(receipt.date) != nil, "a receipt has no date")
    }
  }

  private static func read(_ field: String) throws(FuzzFailure) {
    if let metadata = UploadMetadata(field) {
      for key in metadata.values.keys { _ = metadata[key] }
      try expect(
        UploadMetadata(metadata.field)?.values == metadata.values
          || metadata.field.utf8.count > UploadMetadata.lengthLimit,
        "metadata does not come back")
    }
    if let sum = UploadChecksum(field) {
      try expect(UploadChecksum(sum.field) == sum, "a sum does not come back")
    }
    if let date = HTTPDate.parse(field) {
      try expect(HTTPDate.parse(HTTPDate.text(date)) == date, "a date does not come back")
    }
    let now = Timestamp(secondsSince1970: 1_795_255_872)
    if let span = RetryAfter.parse(field, now: now) {
      try expect(span >= .zero && span <= RetryAfter.limit, "a receiver can make a sender wait for ever")
    }
    let endpoint: ReceiverAddress
    do throws(SupportBundleError) {
      endpoint = try ReceiverAddress("https://support.example.com/inbox/uploads")
    } catch {
      throw FuzzFailure("an address is refused")
    }
    if let address = endpoint.resolving(field) {
      let authority = address.text.lowercased().dropFirst("https://".count).prefix { !"/?#".contains($0) }
      try expect(
        address.text.lowercased().hasPrefix("https://")
          && ["support.example.com", "support.example.com:443"].contains(authority), "a location leads elsewhere")
      _ = address.lastComponent
    }
    // Whether it is refused does not matter here.
    if let address = try? ReceiverAddress(field) {
      try expect(
        address.origin.hasPrefix("https://") || address.origin.hasPrefix("http://localhost")
          || address.origin.hasPrefix("http://127.") || address.origin.hasPrefix("http://[::1]"),
        "an address is not encrypted")
      try expect(!address.withoutQuery.contains("?"), "an address keeps its secret part")
    }
  }

  static let seeds: [FuzzSeed] = [
    FuzzSeed("metadata", "filename d29ybGQ=,filetype YXBwbGljYXRpb24vZ3ppcA==,is_confidential\nsha256 YQ=="),
    FuzzSeed("sum", "sha256 LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=\nsha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0="),
    FuzzSeed("dates", "Sun, 06 Nov 1994 08:49:37 GMT\nSunday, 06-Nov-94 08:49:37 GMT\nSun Nov  6 08:49:37 1994\n120"),
    FuzzSeed(
      "addresses",
      "/inbox/uploads/1\nuploads/1?x=%C3%A4\nhttps://support.example.com:443/2\n//evil.example.com/\nhttp://[::1]:8080/\n"
        + "http://127.0.0.1/\nhttps://a.example/x?secret=1"),
    FuzzSeed(
      "receipt",
      "{\"id\": \"17\", \"sha256\": \"2a0ace69\", \"bytes\": 98304, \"date\": \"2026-11-21T10:11:12.345Z\", \"more\": [1]}"
    ),
  ]
}
