import Compatibility
import Failures
import StoreFiles
import TusProtocol

/// Single objects.
extension S3Client {
  /// The field by which a writer knows its own object again.
  private static let writerField = "x-amz-meta-lazaret-write"

  /// The most bytes that are written with one request (Amazon S3 User Guide, "Uploading objects": 5 GB).
  package static let longestWrite = 5_000_000_000

  /// Writes an object with one request.
  ///
  /// - Throws: `s3-precondition` where the condition is not met; `s3-unsupported` where the server knows no conditions.
  package func put(
    _ key: String, _ bytes: ArraySlice<UInt8>, when condition: S3WriteCondition = .none
  ) throws(S3Error) {
    var call = Call(method: .put, key: key, body: bytes, operation: "write to the object storage")
    guard condition == .absent else {
      _ = try send(call)
      return
    }
    let writer = UniversalIdentifier.random().description
    call.fields = [("if-none-match", "*"), (Self.writerField, writer)]
    do throws(S3Error) {
      let answer = try send(call, accepting: [412])
      guard answer.status == 412 else { return }
      // The answer to an earlier attempt may be what was lost, and not the request; libcurl sends again by itself, too, on a
      // connection that it kept and that the server has closed.
      if try self.writer(of: key) == writer { return }
      throw refusal(answer, call)
    } catch {
      guard error.kind == .unsupported else { throw error }
      var error = error
      error.detail += "; the server does not write conditionally"
      throw error
    }
  }

  /// What a writer gave an object to know it by; nil where there is no object, or it has nothing of the kind.
  private func writer(of key: String) throws(S3Error) -> String? {
    let call = Call(method: .head, key: key, limit: 0, operation: "look at an object")
    let answer = try send(call, accepting: [404])
    return answer.status == 404 ? nil : answer.fields[Self.writerField]
  }

  /// The bytes of a range, cut off at the end of the object; empty where the range begins behind it.
  ///
  /// - Throws: `s3-not-found`, `s3-answer` where other bytes came than were asked for.
  package func get(_ key: String, at offset: Int64, length: Int) throws(S3Error) -> [UInt8] {
    guard offset >= 0, length > 0 else { return [] }
    let last = offset.addingReportingOverflow(Int64(length) - 1)
    let end = last.overflow ? Int64.max : last.partialValue
    let call = Call(
      method: .get, key: key, fields: [("range", "bytes=\(offset)-\(end)")], limit: length,
      operation: "read from the object storage")
    for attempt in 1... {
      let answer = try send(call, accepting: [416])
      if answer.status == 416 { return [] }
      if let bytes = Self.range(answer, offset, length) { return bytes }
      // A body that is shorter than what stands above it is one that was cut off.
      guard attempt < settings.patience.attempts else {
        throw odd("other bytes came than were asked for", call)
      }
      waiting.pause(waiting.random(settings.patience.pause(after: attempt)))
    }
    return []
  }

  /// The bytes that an answer has of a range; nil where it has others.
  private static func range(_ answer: HTTPAnswer, _ offset: Int64, _ length: Int) -> [UInt8]? {
    // A whole object is what was asked for only where the range has all of it.
    if answer.status == 200 { return offset == 0 && answer.body.count <= length ? answer.body : nil }
    guard answer.status == 206, let field = answer.fields["content-range"], field.hasPrefix("bytes ") else {
      return nil
    }
    let numbers = field.dropFirst("bytes ".count).split(whereSeparator: { $0 == "-" || $0 == "/" }).map { Int64($0) }
    guard numbers.count == 3, let first = numbers[0], let last = numbers[1], let whole = numbers[2] else { return nil }
    guard first == offset, last >= first, last < whole, last - first + 1 == Int64(answer.body.count),
      last - first + 1 == min(Int64(length), whole - offset)
    else { return nil }
    return answer.body
  }

  /// What the server says of an object; nil where there is none.
  package func head(_ key: String) throws(S3Error) -> S3ObjectFacts? {
    let call = Call(method: .head, key: key, limit: 0, operation: "look at an object")
    let answer = try send(call, accepting: [404])
    if answer.status == 404 { return nil }
    guard let length = answer.fields["content-length"].flatMap({ Int64($0) }), length >= 0 else {
      throw odd("the answer has no length", call)
    }
    return S3ObjectFacts(
      key: key, bytes: length, modified: answer.fields["last-modified"].flatMap { HTTPDate.parse($0) })
  }

  /// Removes an object; no error where there is none.
  ///
  /// In a bucket that keeps versions the object is only hidden.
  package func delete(_ key: String) throws(S3Error) {
    let call = Call(method: .delete, key: key, operation: "remove from the object storage")
    _ = try send(call, accepting: [404])
  }
}
