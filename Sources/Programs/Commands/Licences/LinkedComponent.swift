/// Something that is linked into the command, with its licence.
struct LinkedComponent: Encodable {
  /// How it gets into the process.
  enum Linking: String, Encodable {
    case own
    /// Its code is in the program.
    case included
    /// Swift's runtime: its code is in packaged programs, and else in shared libraries of the toolchain.
    case runtime
    /// A shared library of the system.
    case shared
  }

  var name: String
  /// The exact version, of packages that the build fetches.
  var version: String?
  /// The component whose sources it is a part of.
  var within: String?
  /// An expression of SPDX's identifiers.
  var licence: String
  var linking: Linking
  var home: String?
  /// The names of its licence and its notices in ``texts``; none where they come with the library.
  var texts: [String]
}
