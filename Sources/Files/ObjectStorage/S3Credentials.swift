/// What requests are signed with; it never shows what it holds.
package struct S3Credentials: Sendable, Hashable {
  /// The name of the key.
  package let accessKey: String

  let secretKey: String

  /// What temporary credentials have besides; nil for lasting ones.
  let sessionToken: String?

  /// Credentials.
  package init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// That there are credentials, and no more.
  package var description: String { "credentials" }

  /// The same.
  package var debugDescription: String { description }

  /// Nothing.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
