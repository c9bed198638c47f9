import Failures

/// What a bucket does with what is removed.
package enum S3Keeping: String, Sendable, Hashable {
  /// It is gone.
  case nothing

  /// Earlier versions of objects stay, also of those that were removed.
  case versions

  /// Objects cannot be removed for a time that the bucket sets.
  case locked

  /// The credentials do not allow to ask.
  case unknown
}

extension S3Client {
  /// What the bucket does with what is removed.
  package func keeping() throws(S3Error) -> S3Keeping {
    if let lock = try configuration("object-lock"), lock.name == "ObjectLockConfiguration",
      lock.text("ObjectLockEnabled") == "Enabled"
    {
      return .locked
    }
    guard let versioning = try configuration("versioning"), versioning.name == "VersioningConfiguration" else {
      return .unknown
    }
    // Where it was only suspended, what is removed from then on is gone.
    return versioning.text("Status") == "Enabled" ? .versions : .nothing
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
