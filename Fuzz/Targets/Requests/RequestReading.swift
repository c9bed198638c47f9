internal import HTTPServer
internal import Platform

/// Reads bytes as a request: the first line is the address, then header fields to an empty line, then the body.
enum RequestReading {
  static let seeds: [FuzzSeed] = [
    FuzzSeed("page", "/stores/a%20b/pages/12?x=1+2&y=%26&y=\nRange: bytes=0-99\nIf-Range: \"x\"\nCookie: a=1; b=2\n\n"),
    FuzzSeed("form", "/actions\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 11\n\na=1+2&b=%C3"),
    FuzzSeed(
      "multipart",
      "/actions\nContent-Type: multipart/form-data; boundary=\"XX\"\n\n--XX\r\nContent-Disposition: form-data; "
        + "name=\"f\"; filename=\"a;b\"\r\nContent-Type: text/plain\r\n\r\nline\r\n--XX\r\n"
        + "Content-Disposition: form-data; name=\"c\"\r\n\r\nv\r\n--XX--\r\n"),
  ]

  static func run(_ bytes: [UInt8]) throws(FuzzFailure) {
    let end = bytes.firstRange(of: [10, 10])
    let head = String(decoding: bytes[..<(end?.lowerBound ?? bytes.count)], as: UTF8.self)
    let lines = head.split(separator: "\n", omittingEmptySubsequences: false)
    var headers = HeaderFields()
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      headers.add(String(parts[0]), parts.count > 1 ? String(parts[1].drop { $0 == " " }) : "")
    }
    let address = String(lines.first ?? "")
    let body = Array(bytes[(end?.upperBound ?? bytes.count)...])
    var checked = headers
    checked.set("Host", "127.0.0.1:80")
    let rules = RequestRules(hosts: RequestRules.loopbackHosts(port: 80))
    for method in Method.allCases {
      // Whether it is refused does not matter here.
      _ = try? rules.check(method: method.rawValue, target: address, version: "HTTP/1.1", headers: checked)
    }
    let target: RequestTarget
    do throws(Refusal) {
      target = try RequestTarget(address)
    } catch {
      target = RequestTarget(segments: [])
    }
    try check(target)
    let request = Request(.post, target, headers: headers, body: body)
    _ = request.cookies
    // Likewise.
    _ = try? FormData(request)
    for count in [0, 1, 1000, Int64.max] {
      guard case .part(let range) = ByteRange(headers["Range"], of: count) else { continue }
      try expect(range.lowerBound >= 0 && range.upperBound <= count && !range.isEmpty, "a range beyond the end")
    }
    let text = String(decoding: body, as: UTF8.self)
    let page: HTML = "<p title=\"\(text)\"></p>"
    try expect(
      page.text.dropFirst(10).dropLast(6).utf8.allSatisfy { !"<>\"'".utf8.contains($0) }, "a text ends its attribute")
    _ = CSVRow.line([text])
    try expect(!JSON.literal(text).contains("</"), "a text ends its script")
    try expect(
      Response.text("").downloaded(as: text).headers.fields.allSatisfy(\.isLegal), "a file name ends its header field")
  }

  private static func check(_ target: RequestTarget) throws(FuzzFailure) {
    guard !target.isServer else { return }
    for segment in target.segments {
      let isPlain =
        !segment.isEmpty && segment != "." && segment != ".." && !segment.utf8.contains { "/\\\0".utf8.contains($0) }
      try expect(isPlain, "a segment leads elsewhere")
    }
    let again: RequestTarget
    do throws(Refusal) {
      again = try RequestTarget(target.path + target.query.text)
    } catch {
      // Encoding can make an address longer than what is read.
      return try expect(error.status == .uriTooLong, "an address that was read is refused: \(error.words)")
    }
    try expect(again == target, "an address differs when it is written again")
  }
}
