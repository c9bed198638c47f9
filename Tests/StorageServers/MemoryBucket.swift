package import ObjectStorage
import Platform

/// A server with one bucket in memory, which fails as it is told to.
///
/// It is no proof of what real servers do: for what goes wrong, and how a client gets over it.
package final class MemoryBucket: Sendable {
  /// What goes wrong with a request.
  package enum Fault: Sendable {
    /// The server refuses for now.
    case refuse

    /// The connection is closed before anything is done.
    case cutBefore

    /// All is done, and the connection is closed before the answer.
    case cutAfter

    /// The credentials do not allow it.
    case forbid
  }

  /// A request in short: its number from 0 on, its method and its key.
  package struct Summary: Sendable {
    package var number: Int
    package var method: String
    package var key: String
  }

  private struct Content {
    var bytes: [UInt8]
    var fields: [String: String]
    var date: Timestamp
  }

  private struct State {
    var objects: [String: Content] = [:]
    var uploads: [String: (key: String, parts: [Int: [UInt8]])] = [:]
    var count = 0
    var nextUpload = 1
    var read = 0
    var ignoresConditions = false
    var keepsVersions = false
    var date = Timestamp(secondsSince1970: 1_767_225_600)
  }

  private let state = Mutex(State())
  private let fault: @Sendable (Summary) -> Fault?
  private let server: Mutex<ScriptedServer?> = Mutex(nil)

  /// A bucket.
  ///
  /// - Parameter fault: what goes wrong with a request; nil for nothing.
  package init(
    ignoringConditions: Bool = false, keepingVersions: Bool = false,
    fault: @escaping @Sendable (Summary) -> Fault? = { _ in nil }
  ) throws {
    self.fault = fault
    state.withLock {
      $0.ignoresConditions = ignoringConditions
      $0.keepsVersions = keepingVersions
    }
    let started = try ScriptedServer(
      [], then: .compute { [weak self] request in self?.answer(request) ?? .cut })
    server.withLock { $0 = started }
  }

  deinit { server.withLock { $0?.stop() } }

  /// How many requests came.
  package var requests: Int { state.withLock { $0.count } }

  /// How many bytes of objects were read.
  package var bytesRead: Int { state.withLock { $0.read } }

  /// The keys of all objects.
  package var keys: [String] { state.withLock { $0.objects.keys.sorted() } }

  /// The uploads that were neither completed nor given up.
  package var openUploads: Int { state.withLock { $0.uploads.count } }

  /// Lets time pass on the server.
  package func advance(seconds: Int64) { state.withLock { $0.date.secondsSince1970 += seconds } }

  /// A client that waits for nothing.
  package func client(attempts: Int = 6) -> S3Client {
    var settings = S3Settings(
      endpoint: S3Endpoint(isEncrypted: false, host: "127.0.0.1", port: server.withLock { Int($0?.port ?? 0) }),
      region: "us-east-1", usesPathStyle: true, credentials: S3Credentials(accessKey: "k", secretKey: "s"))
    settings.retries.attempts = attempts
    return S3Client(
      "bucket", settings,
      waiting: S3Waiting(now: { Surroundings.machine.now() }, pause: { _ in }, random: { $0 }))
  }

  private func answer(_ request: ScriptedServer.Received) -> ScriptedServer.Step {
    let parts = request.target.split(separator: "?", maxSplits: 1)
    let key = PercentEncoding.decode(parts[0].dropFirst("/bucket/".count), plusIsSpace: true) ?? ""
    var query: [String: String] = [:]
    for item in parts.dropFirst().first?.split(separator: "&") ?? [] {
      let pair = item.split(separator: "=", maxSplits: 1)
      query[String(pair[0])] = pair.count == 2 ? PercentEncoding.decode(pair[1], plusIsSpace: true) ?? "" : ""
    }
    let number = state.withLock { state in
      defer { state.count += 1 }
      return state.count
    }
    switch fault(Summary(number: number, method: request.method, key: key)) {
    case .refuse: return .text(503, "<Error><Code>SlowDown</Code></Error>")
    case .forbid: return .text(403, "<Error><Code>AccessDenied</Code></Error>")
    case .cutBefore: return .cut
    case .cutAfter:
      _ = state.withLock { Self.perform(request, key, query, &$0) }
      return .cut
    case nil: return state.withLock { Self.perform(request, key, query, &$0) }
    }
  }

  private static func perform(
    _ request: ScriptedServer.Received, _ key: String, _ query: [String: String], _ state: inout State
  ) -> ScriptedServer.Step {
    func missing(_ code: String) -> ScriptedServer.Step { .text(404, "<Error><Code>\(code)</Code></Error>") }
    switch request.method {
    case "PUT":
      if let id = query["uploadId"], let number = query["partNumber"].flatMap({ Int($0) }) {
        guard state.uploads[id] != nil else { return missing("NoSuchUpload") }
        state.uploads[id]?.parts[number] = request.body
        return .answer(200, fields: ["ETag": "\"\(number)\""])
      }
      if request.fields["if-none-match"] == "*", state.objects[key] != nil, !state.ignoresConditions {
        return .text(412, "<Error><Code>PreconditionFailed</Code></Error>")
      }
      state.objects[key] = Content(
        bytes: request.body, fields: request.fields.filter { $0.key.hasPrefix("x-amz-meta-") }, date: state.date)
      return .answer(200)
    case "POST" where query["uploads"] != nil:
      let id = "u\(state.nextUpload)"
      state.nextUpload += 1
      state.uploads[id] = (key, [:])
      return .text(
        200, "<InitiateMultipartUploadResult><UploadId>\(id)</UploadId></InitiateMultipartUploadResult>")
    case "POST":
      guard let id = query["uploadId"], let upload = state.uploads.removeValue(forKey: id) else {
        return missing("NoSuchUpload")
      }
      let bytes = upload.parts.sorted { $0.key < $1.key }.flatMap(\.value)
      state.objects[key] = Content(bytes: bytes, fields: [:], date: state.date)
      return .text(200, "<CompleteMultipartUploadResult/>")
    case "DELETE":
      if let id = query["uploadId"] { state.uploads[id] = nil } else { state.objects[key] = nil }
      return .answer(204)
    case "HEAD":
      guard let object = state.objects[key] else { return .answer(404) }
      return .answer(200, fields: object.fields.merging(["content-length": "\(object.bytes.count)"]) { $1 })
    default:
      if query["list-type"] != nil { return listing(query, state) }
      if query["uploads"] != nil {
        let entries = state.uploads.map { "<Upload><Key>\($0.value.key)</Key><UploadId>\($0.key)</UploadId></Upload>" }
        return .text(200, "<ListMultipartUploadsResult>\(entries.joined())</ListMultipartUploadsResult>")
      }
      if query["versioning"] != nil {
        let status = state.keepsVersions ? "<Status>Enabled</Status>" : ""
        return .text(200, "<VersioningConfiguration>\(status)</VersioningConfiguration>")
      }
      guard let object = state.objects[key] else { return missing("NoSuchKey") }
      let numbers = (request.fields["range"] ?? "").dropFirst("bytes=".count).split(separator: "-").map { Int($0) ?? 0 }
      guard numbers.count == 2, numbers[0] < object.bytes.count else { return .answer(416) }
      let end = min(numbers[1], object.bytes.count - 1)
      state.read += end - numbers[0] + 1
      return .answer(
        206, fields: ["Content-Range": "bytes \(numbers[0])-\(end)/\(object.bytes.count)"],
        body: Array(object.bytes[numbers[0]...end]))
    }
  }

  /// Pages of seven, so that there is more than one.
  private static func listing(_ query: [String: String], _ state: State) -> ScriptedServer.Step {
    let prefix = query["prefix"] ?? ""
    let after = query["continuation-token"] ?? ""
    let keys = state.objects.keys.filter { $0.hasPrefix(prefix) && $0 > after }.sorted()
    let page = keys.prefix(7)
    let contents = page.map { key in
      "<Contents><Key>\(key)</Key><LastModified>\((state.objects[key]?.date ?? state.date).rfc3339)</LastModified>"
        + "<Size>\(state.objects[key]?.bytes.count ?? 0)</Size></Contents>"
    }
    var rest = ""
    if keys.count > page.count, let last = page.last {
      rest = "<IsTruncated>true</IsTruncated><NextContinuationToken>\(last)</NextContinuationToken>"
    }
    return .text(
      200, "<ListBucketResult>\(contents.joined())\(rest)</ListBucketResult>",
      fields: ["Date": HTTPDate.text(state.date)])
  }
}
