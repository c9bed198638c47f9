/// An object that is being written in parts.
package struct S3Upload: Sendable, Hashable {
  /// The key that the object will have.
  package var key: String

  /// What the server calls the upload.
  package var id: String

  /// An upload.
  package init(key: String, id: String) {
    self.key = key
    self.id = id
  }
}

/// A part of an object that was written.
package struct S3Part: Sendable, Hashable {
  /// Its number, from 1 on.
  package var number: Int

  /// What the server calls its content.
  package var tag: String
}
