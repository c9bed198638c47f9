package import Platform

/// A request to a server of the S3 protocol that cannot be met.
package typealias S3Error = Failure<S3ErrorKind>

/// Why a request to a server of the S3 protocol cannot be met.
package enum S3ErrorKind: String, FailureKind {
  /// A text that is no `s3://bucket/prefix`.
  case address = "s3-address"

  /// The settings of the environment, or of the files that it names, contradict themselves or cannot be used.
  case settings = "s3-settings"

  /// There are no credentials, or the server does not know them.
  case credentials = "s3-credentials"

  /// The credentials do not allow what is asked for.
  case access = "s3-access"

  /// There is no such bucket.
  case noBucket = "s3-no-bucket"

  /// There is no such object.
  case notFound = "s3-not-found"

  /// The bucket lies in another region.
  case region = "s3-region"

  /// The clocks of this machine and of the server differ too much.
  case clock = "s3-clock"

  /// The server cannot be reached, or the connection broke.
  case unreachable = "s3-unreachable"

  /// The certificate of the server is not one that this machine trusts.
  case certificate = "s3-certificate"

  /// The server took longer than it may.
  case timeOut = "s3-time-out"

  /// The server is overloaded, or failed by itself.
  case server = "s3-server"

  /// Something of that name is there already, or what is there has changed.
  case precondition = "s3-precondition"

  /// What was sent did not arrive as it was.
  case checksum = "s3-checksum"

  /// The server cannot do what this software depends on.
  case unsupported = "s3-unsupported"

  /// The answer is not one that the protocol allows.
  case answer = "s3-answer"

  /// What a failure says beyond its kind.
  package struct Details: FailureDetails {
    /// The status of the answer; nil where none came.
    package var status: Int?

    /// The word that the answer has for what went wrong, such as `AccessDenied`; nil where it has none.
    package var word: String?

    /// Nothing more to say.
    package init() {}

    /// What an answer said.
    package init(status: Int?, word: String?) {
      self.status = status
      self.word = word
    }
  }

  /// What was being done, where a failure does not say.
  package static let usualOperation = "use the object storage"

  /// What the reader can do next, where a failure does not say.
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

  /// Whether the environment is at fault: everything but what was asked for.
  package var isEnvironmental: Bool {
    switch self {
    case .address, .notFound, .precondition: false
    case .settings, .credentials, .access, .noBucket, .region, .clock, .unreachable, .certificate, .timeOut, .server,
      .checksum, .unsupported, .answer:
      true
    }
  }
}
