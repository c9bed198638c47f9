package import Platform

package typealias S3Error = Failure<S3ErrorKind>

package enum S3ErrorKind: String, FailureKind {
  case address = "s3-address"

  /// The environment or its files are invalid.
  case settings = "s3-settings"

  /// Missing, or unknown to the server.
  case credentials = "s3-credentials"

  /// The credentials lack the permission.
  case access = "s3-access"

  case noBucket = "s3-no-bucket"

  case notFound = "s3-not-found"

  case region = "s3-region"

  case clock = "s3-clock"

  /// The server is out of reach, or the connection broke.
  case unreachable = "s3-unreachable"

  case certificate = "s3-certificate"

  case timeOut = "s3-time-out"

  /// The server is overloaded or failed.
  case server = "s3-server"

  /// The key is taken, or the object has changed.
  case precondition = "s3-precondition"

  /// The body was corrupted on the way.
  case checksum = "s3-checksum"

  /// The server lacks a needed function.
  case unsupported = "s3-unsupported"

  /// The answer breaks the protocol.
  case answer = "s3-answer"

  package struct Details: FailureDetails {
    package var status: Int?

    /// The error code, such as `AccessDenied`.
    package var word: String?

    package init() {}

    package init(status: Int?, word: String?) {
      self.status = status
      self.word = word
    }
  }

  package var usualOperation: String { "use the object storage" }

  package var usualHint: String {
    switch self {
    case .address: "Write it as s3://bucket or s3://bucket/prefix; credentials are no part of it."
    case .settings: "Correct the variable or the file."
    case .credentials:
      "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile in ~/.aws/credentials that AWS_PROFILE names."
    case .access: "Ask the owner of the bucket for the right to list it, and to read, write and delete its objects."
    case .noBucket: "Check the name, and AWS_ENDPOINT_URL_S3 and AWS_REGION; buckets are not made by this software."
    case .notFound: "It may have been removed meanwhile."
    case .region: "Set AWS_REGION to the region of the bucket."
    case .clock: "Set the clock of this machine right."
    case .unreachable: "Check the network and AWS_ENDPOINT_URL_S3, then run it again."
    case .certificate: "Check AWS_ENDPOINT_URL_S3; AWS_CA_BUNDLE names a file with the authorities to trust."
    case .timeOut, .server: "Run it again later."
    case .precondition: "Run it again."
    case .checksum: "Run it again; where that does not help, check the network and the memory of this machine."
    case .unsupported: "Use another server, or a newer version of it."
    case .answer: "Check that AWS_ENDPOINT_URL_S3 names a server of the S3 protocol."
    }
  }

  package var isEnvironmental: Bool {
    switch self {
    case .address, .notFound, .precondition: false
    case .settings, .credentials, .access, .noBucket, .region, .clock, .unreachable, .certificate, .timeOut, .server,
      .checksum, .unsupported, .answer:
      true
    }
  }
}
