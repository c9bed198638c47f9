public import Failures

/// Something that is no archive, or one that is not to be unpacked.
///
/// The detail has names of an archive only as far as they can be printed.
public typealias ArchiveError = Failure<ArchiveErrorKind>

/// Why something is no archive, or one that is not to be unpacked.
public enum ArchiveErrorKind: String, FailureKind {
  /// The packed bytes are damaged.
  case gzip = "gzip-damaged"

  /// The archive ends too early.
  case cutOff = "archive-cut-off"

  /// More would be unpacked than is allowed.
  case tooLarge = "archive-too-large"

  /// The bytes are not those of a tar archive.
  case tar = "tar-damaged"

  /// The archive holds a link, a device or another thing that is no file and no folder.
  case notAFile = "archive-not-a-file"

  /// A name would lead out of the folder, or is not one that every system takes.
  case name = "archive-name"

  /// Two files have one name.
  case doubled = "archive-name-doubled"

  case memory = "out-of-memory"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "read the archive"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .gzip, .cutOff, .tar: "Ask for the file again: what arrived is not what was sent."
    case .tooLarge: "Unpack it by hand if you trust it, or allow more."
    case .notAFile, .name, .doubled: "Do not unpack it by hand: no bundle of this software is made like that."
    case .memory: "Free some memory and run the same command again; nothing was lost."
    }
  }
}

extension ArchiveError {
  /// An error in the usual words but for what is wrong, a sentence without its full stop.
  package init(_ kind: Kind, _ detail: String) { self.init(kind, detail: detail) }
}
