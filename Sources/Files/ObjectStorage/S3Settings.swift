/// How a server of the S3 protocol is reached.
package struct S3Settings: Sendable {
  /// The server.
  package var endpoint: S3Endpoint

  /// The region that requests are signed for.
  package var region: String

  /// Whether the bucket is the first part of the path, and not of the host's name.
  package var usesPathStyle: Bool

  /// What requests are signed with.
  package var credentials: S3Credentials

  /// A file with the authorities whose certificates are trusted; nil for those of the system.
  package var authorities: String?

  /// How long is waited.
  package var patience = S3Patience()

  /// How a server is reached.
  package init(
    endpoint: S3Endpoint, region: String, usesPathStyle: Bool, credentials: S3Credentials, authorities: String? = nil
  ) {
    self.endpoint = endpoint
    self.region = region
    self.usesPathStyle = usesPathStyle
    self.credentials = credentials
    self.authorities = authorities
  }
}

/// How long is waited for a server, and how often it is asked.
package struct S3Patience: Sendable, Hashable {
  /// The milliseconds for making a connection.
  package var connecting = 10_000

  /// The seconds for which fewer than ``slowest`` bytes a second may pass.
  package var stalling = 30

  /// The bytes a second below which a transfer counts as stalled.
  package var slowest = 512

  /// The seconds for an answer that the server has to work for, such as the end of a multipart upload.
  package var working = 300

  /// The seconds that one request takes at most.
  package var whole = 1800

  /// How often a request is sent at most; with its pauses, a server that begins anew has half a minute for it, mostly.
  package var attempts = 12

  /// The milliseconds that the first pause takes at most; each further one twice as many.
  package var firstPause = 200

  /// The milliseconds that any pause takes at most.
  package var longestPause = 10_000

  /// The seconds that a server can ask to wait, at most.
  package var longestPauseAsked = 30

  /// The usual.
  package init() {}

  /// That of a process whose caller waits, or which does other things meanwhile.
  package static var short: S3Patience {
    var patience = S3Patience()
    patience.attempts = 6
    return patience
  }

  /// The milliseconds that the pause before a further attempt takes at most.
  ///
  /// - Parameter attempt: the number of attempts that failed, from 1 on.
  package func pause(after attempt: Int) -> Int {
    min(longestPause, firstPause << min(max(attempt - 1, 0), 20))
  }
}
