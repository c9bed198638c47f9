package import ObjectStorage
import TestSupport

/// The server of the S3 protocol that the environment names; `Scripts/servers` starts one.
package enum RealServer {
  /// Whether there is one.
  package static let isThere = environment("LAZARET_S3_ENDPOINT") != nil && environment("LAZARET_S3_BUCKET") != nil

  /// What is said where tests are skipped.
  package static let absence = "LAZARET_S3_ENDPOINT names no server; see Scripts/servers"

  /// A client of a bucket, as the usual variables have it.
  package static func client(
    _ variable: String = "LAZARET_S3_BUCKET", changing change: [String: String] = [:]
  ) throws -> S3Client? {
    guard let bucket = environment(variable) else { return nil }
    let surroundings = S3Environment { name in
      change[name] ?? (name == "AWS_ENDPOINT_URL_S3" ? environment("LAZARET_S3_ENDPOINT") : environment(name))
    }
    return S3Client(bucket, try surroundings.settings(for: try S3Address("s3://\(bucket)")))
  }
}
