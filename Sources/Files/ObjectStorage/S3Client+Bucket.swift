import Failures

extension S3Client {
  /// What the bucket does with what is removed.
  package func keeping() throws(S3Error) -> S3Keeping {
    if let lock = try configuration("object-lock"), lock.name == "ObjectLockConfiguration",
      lock.text("ObjectLockEnabled") == "Enabled"
    {
      return .locked(days: Self.days(lock))
    }
    guard let versioning = try configuration("versioning"), versioning.name == "VersioningConfiguration" else {
      return .unknown
    }
    // Where it was only suspended, what is removed from then on is gone.
    return versioning.text("Status") == "Enabled" ? .versions : .nothing
  }

  /// For how long the bucket locks an object that says nothing else (Amazon S3 API Reference, "DefaultRetention").
  private static func days(_ lock: XMLElement) -> Int? {
    guard let rule = lock.all("Rule").first?.all("DefaultRetention").first else { return nil }
    let days = rule.text("Days").flatMap { Int($0) } ?? rule.text("Years").flatMap { Int($0) }.map { $0 &* 365 }
    return days.flatMap { (1...36_500).contains($0) ? $0 : nil }
  }

  /// A part of the bucket's configuration; nil where there is none, or it is not told.
  private func configuration(_ name: String) throws(S3Error) -> XMLElement? {
    let call = Call(method: .get, query: [(name, "")], operation: "look at the bucket")
    do throws(S3Error) {
      let answer = try send(call, accepting: [403, 404, 405])
      return answer.isSuccess ? XMLElement(answer.body) : nil
    } catch {
      guard error.kind == .unsupported || error.status == 400 else { throw error }
      return nil
    }
  }
}
