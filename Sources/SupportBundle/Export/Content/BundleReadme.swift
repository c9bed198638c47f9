/// The explanation in every bundle: `data/README.txt`.
enum BundleReadme {
  static func text(_ level: BundleLevel, name: String, storePath: String?, staying: String) -> [UInt8] {
    let store = storePath ?? ""
    let content =
      switch level {
      case .facts: "There is nothing of the store's records in it."
      case .damagedPages:
        """
        pages/pages.bin holds the damaged pages of the store and those of its schema, as they are, one behind the other;
        pages/index.json tells of each range of it which pages it is, from which file and offset, and why it is there.
        They can hold records of the store's owner. Treat them as such.
        """
      case .scrubbed:
        """
        \(staying)

        \(store) is the store, page for page and with the same damage, with meaningless values of the same length and
        kind in the place of its own. scrub.json says what was replaced, what stays and why, and what could not be
        understood and was overwritten. What fails on the original fails alike on it.
        """
      case .full:
        """
        \(store) is the store as it is, byte for byte, with all records of its owner, and its companions
        beside it. Treat it as such: keep it encrypted, and delete it when it is no longer needed.
        """
      }
    let look =
      storePath.map { path in
        """

          lazaret inspect data/\(path)
          lazaret salvage data/\(path) -o Rescued.sqlite
          lazaret serve
        """
      } ?? ""
    return Array(
      """
      What this is
      ============

      A support bundle about the store "\(name)", made by Lazaret for finding out why the store did not open or lost
      records. Its level is "\(level.rawValue)": \(level.words).

      \(content)

      facts.json         what was found, in numbers and words
      examination.json   every note of the examination, as lazaret inspect prints it as JSON
      salvage.json       what can be recovered and what not, and the likely causes
      page-map.json      what every page is: state, table, kind
      schema.sql         the statements of the schema, as far as they could be read
      model/             the models of the app and of the store, compiled and as JSON
      receipt.json       the receipt of the quarantine, where the store is in one
      timeline.json      what happened to the store, and when
      log.txt            the log of looking at the store and of opening a copy of it
      system.json        the system that it was on

      How to look at it
      =================

      A bundle whose name ends in .age is encrypted. The holder of the secret key opens it with

        age -d -i KEY -o BUNDLE.tar.gz BUNDLE.tar.gz.age

      or lets Lazaret do all of it, decrypting, unpacking safely and checking every sum:

        lazaret bundle unpack BUNDLE -o FOLDER

      By hand:

        tar -xzf BUNDLE.tar.gz
        cd the-folder-that-it-made
        sha256sum -c manifest-sha256.txt tagmanifest-sha256.txt
      \(look)

      """.utf8)
  }
}
